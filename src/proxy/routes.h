/* SPDX-License-Identifier: Apache-2.0 */
/* routes: what siltd told of previews. A name (what a visitor says, with a proof or without) leads to a route, which has a number;
 * the routes of one sandbox share a guest, which has the limits.
 *
 * A new siltd knows no routes: those that nobody uses are forgotten, the others are found again by a name of theirs, and cut when there is
 * none any more. */
#pragma once

#include "proxy/guest.h"
#include "proxy/host.h"
#include "proxy/talk.h"

struct silt_route {
    struct silt_routes *all; /* borrowed */
    struct silt_guest *guest;
    struct silt_link link;  /* in all->list, the one used last at the end */
    struct silt_link names; /* that lead here */
    struct silt_link users; /* struct silt_route_user */
    struct silt_link idle;  /* sockets: struct silt_upstream */
    uint64_t number;        /* 0: it is dropped */
    bool sure;              /* this siltd knows the number; one of a former siltd can be dropped by it all the same */
    uint32_t flags;
    uint16_t port;
    unsigned using;   /* users */
    unsigned nidle;
    bool told;        /* siltd knows that it is used */
    int64_t quiet_ms; /* when the last user left */
    struct silt_grave grave;
};

/* Embedded in what uses a route. */
struct silt_route_user {
    struct silt_link link;
    /* The route is no more: let go of it. */
    void (*on_drop)(struct silt_route_user *u);
};

/* Embedded in what waits for one. */
struct silt_route_wait {
    struct silt_link link;
    /* ROUTE with a route, UNKNOWN, LOCKED or BUSY */
    void (*on_found)(struct silt_route_wait *w, enum silt_preview_say say, struct silt_route *route, uint32_t lasts_s);
};

struct silt_routes {
    struct silt_loop *loop;  /* borrowed */
    struct silt_talk *talk;  /* borrowed */
    struct silt_map names;   /* by form, name and proof */
    struct silt_map numbers; /* by number */
    struct silt_guests guests;
    struct silt_link list;
    size_t count, nnames;
    unsigned telling; /* those who wait or use: no route is forgotten to make room meanwhile */
    void (*close_idle)(struct silt_link *idle); /* of a route's idle ones */
    struct silt_timer sweep;
};

void silt_routes_init(struct silt_routes *r, struct silt_loop *loop, struct silt_talk *talk, uint64_t bandwidth);
/* Known already: calls w->on_found before it returns. Else w waits. */
void silt_routes_find(struct silt_routes *r, const struct silt_host *h, struct silt_route_wait *w);
bool silt_routes_knows(struct silt_routes *r, const struct silt_host *h);
void silt_routes_leave(struct silt_route_wait *w); /* fine when it waits no more */
/* One that siltd handed a visitor for. */
struct silt_route *silt_routes_hand(struct silt_routes *r, const struct silt_preview_answer *n);

void silt_route_use(struct silt_route *route, struct silt_route_user *u);
void silt_route_unuse(struct silt_route *route, struct silt_route_user *u);
void silt_route_drop(struct silt_route *route); /* tells its users */
void silt_routes_drop_number(struct silt_routes *r, uint64_t number);
void silt_routes_renew(struct silt_routes *r); /* there is another siltd */
