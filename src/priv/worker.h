/* SPDX-License-Identifier: Apache-2.0 */
/* worker: one of the processes of silt-priv that answer requests, one at a time each. They wait on
 * the same socket; the kernel gives each message to one. */
#pragma once

#include "priv/unit.h"

/* What a worker is doing, in memory that it shares with the main process: should it die, siltd
 * still gets an answer. */
struct silt_worker_desk {
    uint64_t seq;
    uint32_t slot;
    uint32_t busy;
};

/* Returns when siltd has closed the channel. */
int silt_worker_run(struct silt_priv_unit *u, int siltd, struct silt_worker_desk *desk,
                    struct silt_error *e);
/* In the main process, after the worker's death. */
void silt_worker_answer_for(int siltd, struct silt_worker_desk *desk);
