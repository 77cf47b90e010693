/* SPDX-License-Identifier: Apache-2.0 */
/* egress: siltd's side of the channel to silt-proxy (wire/egress.h), which keeps what sandboxes in
 * mode allow to their rules, counts, and tells what was refused. It may die and come back: each new
 * one is told everything. What it says is checked, and can only be about the sandbox whose link it
 * names. */
#pragma once

#include "base/map.h"
#include "event/loop.h"
#include "sandbox/refusal.h"

struct silt_registry;
struct silt_sandbox;

struct silt_egress {
    struct silt_registry *registry; /* borrowed */
    struct silt_watch watch;        /* fd -1: there is no silt-proxy now */
    struct silt_link queue;         /* what is to be said */
    size_t queued;
    struct silt_map by_link; /* number of the link -> its sandbox */
    struct silt_link waits;  /* for counts */
    struct silt_timer sync;  /* running until SYNC was said on this channel */
};

struct silt_egress_end { /* in each sandbox */
    uint32_t link;       /* 0: none that silt-proxy could know */
    bool fresh;          /* what silt-proxy knows of that number is of somebody before */
    bool heard;          /* it has answered about us: what it tells from now on is ours */
    uint64_t barrier;    /* the question whose answer means that */
};

struct silt_egress *silt_egress_new(struct silt_registry *r);
void silt_egress_free(struct silt_egress *x);
void silt_egress_connect(struct silt_egress *x,
                         int fd); /* takes it; also in place of an earlier one */

/* The link is this sandbox's from now on. `fresh`: it was made for it just now. */
void silt_egress_begin(struct silt_sandbox *s, uint32_t link, bool fresh);
/* ... and no longer: its policy, connections and counters go. Fine when it had none. */
void silt_egress_end(struct silt_sandbox *s);
/* Captive: where its way out leads, as its capture says, in the generation s->network.generation: silt_network_on_applied or
 * silt_network_on_listenless tells. Takes the sockets; without any: silt-proxy has them. */
void silt_egress_capture(struct silt_sandbox *s, int *fds, int nfds);
/* silt_captures_on_authority tells. */
void silt_egress_authority(struct silt_egress *x, uint64_t number, bool later); /* later: somebody else says it all */
void silt_egress_untrust(struct silt_egress *x, uint64_t number);
/* What the sandbox's row allows, as the generation s->network.generation: silt_network_on_applied
 * tells. A silt-proxy that comes later is told by itself. */
void silt_egress_set(struct silt_sandbox *s);
/* It is in another mode. `cut`: what runs through silt-proxy ends. */
void silt_egress_leave(struct silt_sandbox *s, bool cut);
/* Once, perhaps at once; NULL: nobody knows. */
typedef void silt_egress_counted(void *context, const struct silt_egress_counts *counts);
void silt_egress_count(struct silt_sandbox *s, silt_egress_counted *on_counted, void *context);
