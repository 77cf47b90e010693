/* SPDX-License-Identifier: Apache-2.0 */
/* routes: a cache of what siltd said about previews. A name (what a client asks for, with or
 * without a proof) leads to a route, which has a number; the routes of one sandbox share its
 * limits.
 *
 * A new siltd knows none of these routes: unused ones are forgotten, the others are looked up
 * again by one of their names, and their connections are cut if it no longer exists. */
#pragma once

#include "proxy/preview/bandwidth.h"
#include "proxy/preview/host.h"
#include "proxy/preview/siltd_channel.h"

struct silt_route {
    struct silt_routes *all; /* borrowed */
    struct silt_bandwidth *guest;
    struct silt_link link;  /* in all->list, the one used last at the end */
    struct silt_link names; /* that lead here */
    struct silt_link users; /* struct silt_route_user */
    struct silt_link idle;  /* sockets: struct silt_upstream */
    uint64_t number;        /* 0: it is dropped */
    bool sure;              /* this siltd confirmed the number; it can also drop unconfirmed ones */
    uint32_t flags;
    uint16_t port;
    unsigned using; /* users */
    unsigned nidle;
    bool told;        /* siltd was told that it is used */
    int64_t quiet_ms; /* when the last user left */
    struct silt_grave grave;
};

/* Embedded in what uses a route. */
struct silt_route_user {
    struct silt_link link;
    /* The route was dropped: stop using it. */
    void (*on_drop)(struct silt_route_user *u);
};

/* Embedded in what waits for one. */
struct silt_route_wait {
    struct silt_link link;
    struct silt_preview_channel_ask *dial; /* borrowed; NULL, or: a socket is wanted, too. It is
                                              asked for if the route has to be asked for */
    uint32_t wait_ms;                      /* for that socket */
    /* ROUTE with a route, UNKNOWN, LOCKED or BUSY */
    void (*on_found)(struct silt_route_wait *w, enum silt_preview_say say, struct silt_route *route,
                     uint32_t lasts_s);
};

struct silt_routes {
    struct silt_loop *loop;            /* borrowed */
    struct silt_preview_channel *talk; /* borrowed */
    struct silt_map names;             /* by form, name and proof */
    struct silt_map numbers;           /* by number */
    struct silt_bandwidths guests;
    struct silt_link list;
    size_t count, nnames;
    unsigned telling;                           /* callbacks are running: no route is evicted */
    void (*close_idle)(struct silt_link *idle); /* of a route's idle ones */
    struct silt_timer sweep;
};

void silt_routes_init(struct silt_routes *r, struct silt_loop *loop,
                      struct silt_preview_channel *talk, uint64_t bandwidth);
/* If known, calls w->on_found before it returns; otherwise w waits. */
void silt_routes_find(struct silt_routes *r, const struct silt_host *h, struct silt_route_wait *w);
bool silt_routes_knows(struct silt_routes *r, const struct silt_host *h);
void silt_routes_leave(struct silt_route_wait *w); /* fine when it is not waiting */
/* The route of a connection that siltd handed over. */
struct silt_route *silt_routes_hand(struct silt_routes *r, const struct silt_preview_answer *n);

void silt_route_use(struct silt_route *route, struct silt_route_user *u);
void silt_route_unuse(struct silt_route *route, struct silt_route_user *u);
void silt_route_drop(struct silt_route *route); /* calls on_drop of its users */
void silt_routes_drop_number(struct silt_routes *r, uint64_t number);
void silt_routes_renew(struct silt_routes *r); /* siltd was restarted */
