/* SPDX-License-Identifier: Apache-2.0 */
/* route_watch: watches the machine's routes while the instance runs, so that the gateway's uplink
 * works after they change. Runs in silt-super. */
#pragma once

#include "engine/network/gateway.h"
#include "event/loop.h"

struct silt_route_watch {
    struct silt_loop *loop;    /* borrowed */
    struct silt_gateway *gate; /* borrowed */
    struct silt_watch changes;
    struct silt_timer calm; /* changes come in bursts */
};

void silt_route_watch_open(struct silt_route_watch *o, struct silt_loop *loop,
                           struct silt_gateway *gate);
void silt_route_watch_close(struct silt_route_watch *o); /* call before closing the loop */
