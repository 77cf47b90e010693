/* SPDX-License-Identifier: Apache-2.0 */
/* egress_channel: siltd's end of the channel to silt-proxy (wire/egress.h), which enforces the
 * rules of sandboxes in mode allow, counts their traffic and reports denials. silt-proxy may
 * restart at any time; siltd then sends it all policies again. Its messages are checked and can
 * only affect the sandbox whose link they name. */
#pragma once

#include "base/map.h"
#include "event/loop.h"
#include "sandbox/network/denials.h"

struct silt_registry;
struct silt_sandbox;

struct silt_egress {
    struct silt_registry *registry; /* borrowed */
    struct silt_watch watch;        /* fd -1: silt-proxy is not connected */
    struct silt_link queue;         /* messages to send */
    size_t queued;
    struct silt_map by_link; /* link number -> sandbox */
    struct silt_link waits;  /* requests for counts */
    struct silt_timer sync;  /* armed until SYNC is sent on this channel */
};

extern const struct silt_facet silt_egress_facet;
/* Takes fd; replaces an earlier one. */
void silt_egress_connect(struct silt_egress *x, int fd);

/* Assigns the link to this sandbox. `fresh`: the link was just created for it. */
void silt_egress_begin(struct silt_sandbox *s, uint32_t link, bool fresh);
/* Releases the link: its policy, connections and counters are dropped. No-op without a link. */
void silt_egress_end(struct silt_sandbox *s);
/* Captive: sends the sandbox's intercept as generation s->network.generation;
 * silt_network_on_applied or silt_network_on_listenless reports the result. Takes the sockets;
 * none: silt-proxy already has them. */
void silt_egress_capture(struct silt_sandbox *s, int *fds, int nfds);
/* The answer goes to silt_intercepts_on_authority. */
/* later: queues only; the caller sends the queue. */
void silt_egress_authority(struct silt_egress *x, uint64_t number, bool later);
void silt_egress_untrust(struct silt_egress *x, uint64_t number);
/* Sends the rules of the sandbox's row as generation s->network.generation; silt_network_on_applied
 * reports the result. A silt-proxy that connects later gets them without a call. */
void silt_egress_set(struct silt_sandbox *s);
/* The sandbox is in another mode now. `cut`: closes its connections through silt-proxy. */
void silt_egress_leave(struct silt_sandbox *s, bool cut);
/* Called once, perhaps at once; NULL: unknown. */
typedef void silt_egress_counted(void *context, const struct silt_egress_counts *counts);
void silt_egress_count(struct silt_sandbox *s, silt_egress_counted *on_counted, void *context);
