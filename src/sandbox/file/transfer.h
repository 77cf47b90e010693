/* SPDX-License-Identifier: Apache-2.0 */
/* transfer: copies the contents of a directory from one sandbox to another. A worker in the source
 * packs them, a worker in the target unpacks them, and siltd holds at most one frame in between.
 * Embedded in its user; fails if either worker or sandbox does. */
#pragma once

#include "sandbox/file/worker_pool.h"

struct silt_transfer { /* embedded, zero; must leave before it is freed */
    struct silt_work_sink from_sink, to_sink;
    struct silt_work *from, *to; /* NULL: finished */
    struct silt_buf held;        /* data `to` had no room for */
    bool all;                    /* everything is packed */
    /* Called once, never from inside the start. `e` is NULL on success. */
    void (*on_done)(struct silt_transfer *t, const struct silt_error *e);
};

/* Both sandboxes must run. Creates the target directory if it is missing. */
int silt_transfer_start(struct silt_transfer *t, struct silt_sandbox *from, silt_slice from_path,
                        struct silt_sandbox *to, silt_slice to_path, struct silt_error *e);
void silt_transfer_leave(struct silt_transfer *t); /* no-op if finished or never started */
