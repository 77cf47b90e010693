/* SPDX-License-Identifier: Apache-2.0 */
/* worker: threads for what blocks (files, checkpoints). A job shares nothing: what it needs is in it, and
 * it is back in the loop's hands when its done is called. */
#pragma once

#include "base/list.h"
#include "event/loop.h"

struct silt_worker;

struct silt_job {
    struct silt_link link;
    void (*run)(struct silt_job *j);  /* on a thread */
    void (*done)(struct silt_job *j); /* on the loop, in the order of completion */
};

int silt_worker_open(struct silt_loop *loop, unsigned threads, struct silt_worker **ret,
                     struct silt_error *e);
void silt_worker_close(struct silt_worker *w); /* finishes running jobs; queued ones are dropped */
void silt_worker_submit(struct silt_worker *w, struct silt_job *j);
