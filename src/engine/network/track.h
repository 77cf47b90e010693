/* SPDX-License-Identifier: Apache-2.0 */
/* track: deletes the tracked connections of sandboxes that no longer exist. The gateway and the
 * machine would keep them for days, until a series of sandboxes fills their tables. Runs in
 * silt-priv's janitor. */
#pragma once

#include "engine/network/conntrack.h"
#include "engine/network/net.h"

struct silt_track {
    const struct silt_net_gate *gate;      /* borrowed */
    struct silt_conntrack inside, outside; /* of the gateway, of the machine; closed: no gateway */
    int look;                              /* socket to check whether a link exists */
    uint32_t number, gone;                 /* result of the last check: entries come in runs */
};

int silt_track_open(struct silt_track *t, const struct silt_net_gate *g, struct silt_error *e);
/* Deletes every connection whose link no longer exists. Returns their number. */
uint32_t silt_track_sweep(struct silt_track *t);
