/* SPDX-License-Identifier: Apache-2.0 */
/* worker: a pool of threads for blocking work (files, checkpoints). A job shares nothing: it
 * carries all it needs, and belongs to the loop again when its `done` is called. Opening the pool
 * may fail. */
#pragma once

#include "base/list.h"
#include "event/loop.h"

struct silt_worker;

struct silt_job {
    struct silt_link link;
    void (*run)(struct silt_job *j);  /* runs on a thread */
    void (*done)(struct silt_job *j); /* runs on the loop, in order of completion */
};

int silt_worker_open(struct silt_loop *loop, unsigned threads, struct silt_worker **ret,
                     struct silt_error *e);
void silt_worker_close(struct silt_worker *w); /* waits for running jobs; drops queued ones */
void silt_worker_submit(struct silt_worker *w, struct silt_job *j);
