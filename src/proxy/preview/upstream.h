/* SPDX-License-Identifier: Apache-2.0 */
/* upstream: a connection to a service inside a sandbox. Between requests it is kept in a pool for
 * a few seconds, for the next request of the same route. */
#pragma once

#include "proxy/preview/routes.h"

struct silt_upstream {
    struct silt_link link;  /* in route->idle */
    struct silt_link aged;  /* in pool->idle, the oldest first */
    struct silt_pool *pool; /* borrowed */
    struct silt_watch watch;
    struct silt_grave grave;
    struct silt_route *route;                                   /* idle: whose; borrowed */
    int64_t idle_ms;                                            /* since when */
    void (*on_ready)(struct silt_upstream *u, uint32_t events); /* NULL: idle */
    void *owner;                                                /* of on_ready */
    bool reused;                                                /* came from the pool */
    bool broken;   /* cannot be written; earlier input may still be readable */
    bool reusable; /* may be pooled after the response */
};

struct silt_pool {
    struct silt_loop *loop; /* borrowed */
    struct silt_link idle;
    size_t count;     /* idle */
    size_t open, max; /* all of them; when there are no descriptors left, nothing of siltd can be
                         heard any more */
    struct silt_timer sweep;
};

void silt_pool_init(struct silt_pool *p, struct silt_loop *loop, size_t max);
bool silt_pool_has_room(struct silt_pool *p); /* for one more; an idle one makes room */
/* Takes fd: non-blocking, connected or about to be. */
struct silt_upstream *silt_upstream_new(struct silt_pool *p, int fd);
void silt_upstream_close(struct silt_upstream *u, bool reset);
/* Keeps it for the route, or closes it. */
void silt_upstream_park(struct silt_upstream *u, struct silt_route *route);
/* The one that was parked last, unless that is longer ago than `age_ms`; NULL: none. */
struct silt_upstream *silt_upstream_take(struct silt_route *route, int64_t age_ms);
void silt_upstream_close_idle(struct silt_link *idle); /* of route->idle */
