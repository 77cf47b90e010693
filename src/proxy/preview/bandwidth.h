/* SPDX-License-Identifier: Apache-2.0 */
/* bandwidth: the limits of one sandbox's previews: concurrent requests, and bytes per second in
 * each direction. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "event/loop.h"

struct silt_bandwidths {
    struct silt_loop *loop; /* borrowed */
    struct silt_map map;    /* by sandbox */
    uint64_t bandwidth;     /* of each, in each direction, bytes a second; 0: unbounded */
};

enum silt_bandwidth_way { SILT_BANDWIDTH_UP, SILT_BANDWIDTH_DOWN, SILT_BANDWIDTH_WAYS };

struct silt_bandwidth {
    struct silt_bandwidths *all; /* borrowed */
    uint32_t sandbox;
    unsigned routes; /* that belong to it */
    unsigned using;  /* requests under way */
    struct {
        int64_t tokens;
        int64_t at_ms;
    } buckets[SILT_BANDWIDTH_WAYS];
    struct silt_link waits; /* those that wait for tokens */
    struct silt_timer refill;
};

struct silt_bandwidth_wait { /* embedded; initialize its link */
    struct silt_link link;
    void (*on_tokens)(struct silt_bandwidth_wait *w);
};

void silt_bandwidths_init(struct silt_bandwidths *all, struct silt_loop *loop, uint64_t bandwidth);
/* Made when there is none. Each call is one route of it, which silt_bandwidth_let_go gives back. */
struct silt_bandwidth *silt_bandwidths_at(struct silt_bandwidths *all, uint32_t sandbox);
void silt_bandwidth_let_go(struct silt_bandwidth *g);

/* How many bytes may be read now, at most `want`. */
size_t silt_bandwidth_allow(struct silt_bandwidth *g, enum silt_bandwidth_way way, size_t want);
void silt_bandwidth_spend(struct silt_bandwidth *g, enum silt_bandwidth_way way, size_t bytes);
void silt_bandwidth_wait(struct silt_bandwidth *g, struct silt_bandwidth_wait *w);
