/* SPDX-License-Identifier: Apache-2.0 */
/* pack: many small records in few frames. */
#pragma once

#include "worker/task.h"

struct silt_pack {
    struct silt_task *task; /* borrowed */
    uint32_t say;           /* enum silt_worker_say */
    size_t len;
};

/* One record: its head and up to two texts, padded to 8. False: siltd is gone, or it fits no frame. */
bool silt_pack_add(struct silt_pack *p, silt_slice head, silt_slice a, silt_slice b);
bool silt_pack_flush(struct silt_pack *p);
