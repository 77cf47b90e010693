/* SPDX-License-Identifier: Apache-2.0 */
/* pack: collects many small records into few frames. */
#pragma once

#include "worker/task.h"

struct silt_pack {
    struct silt_task *task; /* borrowed */
    uint32_t say;           /* enum silt_worker_say */
    size_t len;
};

/* Adds one record: its head and up to two texts, padded to 8 bytes. False: siltd is gone, or the
 * record is too large for a frame. */
bool silt_pack_add(struct silt_pack *p, silt_slice head, silt_slice a, silt_slice b);
bool silt_pack_flush(struct silt_pack *p);
