/* SPDX-License-Identifier: Apache-2.0 */
/* worker: a process of silt-priv that handles requests one at a time. All workers read from the
 * same socket; the kernel delivers each message to one of them. */
#pragma once

#include "priv/helper.h"

/* What a worker is doing, in memory shared with the main process: if the worker dies, the main
 * process answers siltd. */
struct silt_worker_desk {
    uint64_t seq;
    uint32_t slot;
    uint32_t busy;
};

/* Returns when siltd has closed the channel. */
int silt_worker_run(struct silt_priv_helper *u, int siltd, struct silt_worker_desk *desk,
                    struct silt_error *e);
/* Called in the main process after the worker's death. */
void silt_worker_answer_for(const struct silt_priv_helper *u, int siltd,
                            struct silt_worker_desk *desk);
