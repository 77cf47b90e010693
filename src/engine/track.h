/* SPDX-License-Identifier: Apache-2.0 */
/* track: forgets the connections of sandboxes that are gone. The gate would remember them for days,
 * and so would the machine; one sandbox after the other could fill their memory. */
#pragma once

#include "engine/conntrack.h"
#include "engine/net.h"

struct silt_track {
    const struct silt_net_gate *gate; /* borrowed */
    struct silt_conntrack inside,
        outside;           /* of the gate, of the machine; closed: there is no gate */
    int look;              /* to ask whether a link is there */
    uint32_t number, gone; /* the last one that was looked for: entries come in runs */
};

int silt_track_open(struct silt_track *t, const struct silt_net_gate *g, struct silt_error *e);
/* Every connection whose link is not there any more. Answers how many. */
uint32_t silt_track_sweep(struct silt_track *t);
