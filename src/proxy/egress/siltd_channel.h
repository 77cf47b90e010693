/* SPDX-License-Identifier: Apache-2.0 */
/* siltd_channel: the channel between the role egress and siltd (wire/egress.h): policies arrive,
 * refusals and counters leave. Nothing blocks on siltd; while it is away everything continues
 * unchanged. */
#pragma once

#include "event/loop.h"
#include "proxy/egress/intercept.h"
#include "proxy/policy/link_table.h"

enum {
    SILT_EGRESS_QUEUE = 512 /* notes that wait */,
    SILT_EGRESS_SPARE = 64 /* of them for answers */
};

struct silt_egress {
    struct silt_loop *loop;           /* borrowed */
    struct silt_link_table *links;    /* borrowed */
    struct silt_intercepts *captives; /* borrowed */
    struct silt_watch channel;
    struct silt_egress_note queue[SILT_EGRESS_QUEUE]; /* a ring */
    size_t first, waiting;
};

void silt_egress_init(struct silt_egress *e, struct silt_loop *loop, struct silt_link_table *links,
                      struct silt_intercepts *captives);
void silt_egress_replace(struct silt_egress *e,
                         int channel); /* takes it: a new siltd, or a new channel */
