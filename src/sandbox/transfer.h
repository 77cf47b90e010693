/* SPDX-License-Identifier: Apache-2.0 */
/* transfer: the content of a folder of one sandbox into a folder of another one: a worker there packs it, one here unpacks it, and what
 * passes is never more than a frame. */
#pragma once

#include "sandbox/work.h"

struct silt_transfer { /* embedded, zero; must leave before it goes */
    struct silt_work_sink from_sink, to_sink;
    struct silt_work *from, *to; /* NULL: over */
    struct silt_buf held;        /* what `to` had no room for */
    bool all;                    /* everything was packed */
    void (*on_done)(struct silt_transfer *t, const struct silt_error *e); /* NULL: it is there. Once, not from inside the start */
};

/* Both run. The folder is made when it is not there. */
int silt_transfer_start(struct silt_transfer *t, struct silt_sandbox *from, silt_slice from_path, struct silt_sandbox *to,
                        silt_slice to_path, struct silt_error *e);
void silt_transfer_leave(struct silt_transfer *t); /* fine when it is over, or never began */
