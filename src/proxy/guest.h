/* SPDX-License-Identifier: Apache-2.0 */
/* guest: one sandbox as the limits see it: how many requests to it are under way, and how fast bytes pass. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "event/loop.h"

struct silt_guests {
    struct silt_loop *loop; /* borrowed */
    struct silt_map map;    /* by sandbox */
    uint64_t bandwidth;     /* of each, in each direction, bytes a second; 0: unbounded */
};

enum silt_guest_way { SILT_GUEST_UP, SILT_GUEST_DOWN, SILT_GUEST_WAYS };

struct silt_guest {
    struct silt_guests *all; /* borrowed */
    uint32_t sandbox;
    unsigned routes; /* that belong to it */
    unsigned using;  /* requests under way */
    struct {
        int64_t tokens;
        int64_t at_ms;
    } buckets[SILT_GUEST_WAYS];
    struct silt_link waits; /* those that wait for tokens */
    struct silt_timer refill;
};

struct silt_guest_wait { /* embedded; initialize its link */
    struct silt_link link;
    void (*on_tokens)(struct silt_guest_wait *w);
};

void silt_guests_init(struct silt_guests *all, struct silt_loop *loop, uint64_t bandwidth);
/* Made when there is none. Each call is one route of it, which silt_guest_let_go gives back. */
struct silt_guest *silt_guests_at(struct silt_guests *all, uint32_t sandbox);
void silt_guest_let_go(struct silt_guest *g);

/* How many bytes may be read now, at most `want`. */
size_t silt_guest_allow(struct silt_guest *g, enum silt_guest_way way, size_t want);
void silt_guest_spend(struct silt_guest *g, enum silt_guest_way way, size_t bytes);
void silt_guest_wait(struct silt_guest *g, struct silt_guest_wait *w);
