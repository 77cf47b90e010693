/* SPDX-License-Identifier: Apache-2.0 */
/* janitor: the process of silt-priv for work that no request should wait for. It holds the root of
 * every running sandbox, so that the unmount, which writes all dirty data of the pool to disk,
 * happens here. It also empties the trash and deletes the tracked connections of ended sandboxes.
 * It keeps no state that its successor would need. */
#pragma once

#include "engine/network/net.h"
#include "engine/storage/volume.h"

enum silt_janitor_type {
    SILT_JANITOR_KEEP = 1, /* with a descriptor: the slot's root */
    SILT_JANITOR_DROP,     /* the slot's sandbox has ended */
    SILT_JANITOR_RELEASE,  /* the same, at once; the descriptor is closed when done */
    SILT_JANITOR_SWEEP,    /* the trash is not empty */
};

struct silt_janitor_note {
    uint32_t type;
    uint32_t slot;
};

/* Called in a worker. If the janitor is gone, it has dropped everything. */
void silt_janitor_tell(int channel, enum silt_janitor_type type, uint32_t slot, int fd);
/* Waits, for a limited time, until the janitor has released the slot's root. */
void silt_janitor_await_release(int channel, uint32_t slot);

/* The janitor's main loop: returns when the last peer of the channel is gone and all work is
 * done. */
/* borrowed */
struct silt_janitor_place {
    const struct silt_volumes *volumes;
    const struct silt_net_gate *gate;
    int images;
    uint32_t slots;
};
void silt_janitor_run(int channel, const struct silt_janitor_place *place);
