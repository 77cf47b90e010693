/* SPDX-License-Identifier: Apache-2.0 */
/* janitor: the process of silt-priv that does what no request shall wait for. It holds the root of
 * every running sandbox, so that unmounting it (which writes the whole pool's dirty data to the
 * disk) happens here; it deletes what lies in the trash and forgets the connections of those that
 * have ended. It keeps nothing that a successor would need. */
#pragma once

#include "engine/net.h"
#include "engine/volume.h"

enum silt_janitor_type {
    SILT_JANITOR_KEEP = 1, /* descriptor: the slot's root */
    SILT_JANITOR_DROP,     /* the slot's sandbox has ended */
    SILT_JANITOR_RELEASE,  /* the same, now; descriptor: closed when it is done */
    SILT_JANITOR_SWEEP,    /* there is something in the trash */
};

struct silt_janitor_note {
    uint32_t type;
    uint32_t slot;
};

/* In a worker. A janitor that is gone has dropped everything. */
void silt_janitor_tell(int channel, enum silt_janitor_type type, uint32_t slot, int fd);
/* Waits until the slot's root is let go of, at most a little while. */
void silt_janitor_await_release(int channel, uint32_t slot);

/* The janitor itself: returns when the last peer of the channel is gone and all is done. */
struct silt_janitor_place { /* borrowed */
    const struct silt_volumes *volumes;
    const struct silt_net_gate *gate;
    int images;
    uint32_t slots;
};
void silt_janitor_run(int channel, const struct silt_janitor_place *place);
