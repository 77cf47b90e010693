/* SPDX-License-Identifier: Apache-2.0 */
/* egress: the talk with siltd (wire/egress.h): policies come, refusals and counters go. Nothing
 * here waits for siltd, and without it everything goes on as it was. */
#pragma once

#include "event/loop.h"
#include "proxy/captive.h"
#include "proxy/links.h"

enum {
    SILT_EGRESS_QUEUE = 512 /* notes that wait */,
    SILT_EGRESS_SPARE = 64 /* of them for answers */
};

struct silt_egress {
    struct silt_loop *loop;   /* borrowed */
    struct silt_links *links; /* borrowed */
    struct silt_captives *captives; /* borrowed */
    struct silt_watch channel;
    struct silt_egress_note queue[SILT_EGRESS_QUEUE]; /* a ring */
    size_t first, waiting;
};

void silt_egress_init(struct silt_egress *e, struct silt_loop *loop, struct silt_links *links,
                      struct silt_captives *captives);
void silt_egress_replace(struct silt_egress *e,
                         int channel); /* takes it: a new siltd, or a new channel */
