/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/routes.h"
#include "base/clock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NAMES_MAX = 8192,
    ROUTES_MAX = 4096, /* beyond that unused ones are forgotten */
    EACH_MAX = 64,     /* names of one route: each proof makes one, also of those that are over */
    QUIET_MS = 1000,   /* how long a route is called used after its last request: few notes for many
                          requests */
    FIND_AGAIN_MS = 1000,
};

struct name {
    struct silt_routes *all; /* borrowed */
    struct silt_link link;   /* in route->names */
    struct silt_link waits;
    struct silt_preview_channel_ask find;
    struct silt_timer again; /* retries a lookup when siltd was busy */
    struct silt_grave grave;
    struct silt_route
        *route;       /* NULL: not found yet; one that is not `sure`: to be looked up again */
    int64_t until_ms; /* 0: until it is dropped */
    size_t key_len;
    char key[1 + SILT_PREVIEW_NAME + SILT_PREVIEW_PROOF]; /* form, name, 0, proof */
};

static silt_slice number_key(const uint64_t *number)
{
    return (silt_slice){(const char *)number, sizeof(*number)};
}

static silt_slice name_key(const struct name *n)
{
    return (silt_slice){n->key, n->key_len};
}

static const char *name_of(const struct name *n)
{
    return n->key + 1;
}

static const char *proof_of(const struct name *n)
{
    return n->key + 1 + strlen(n->key + 1) + 1;
}

static size_t make_key(const struct silt_host *h, const char *proof,
                       char out[sizeof(((struct name *)0)->key)])
{
    size_t name = strlen(h->name), len = strlen(proof);
    out[0] = (char)h->form;
    memcpy(out + 1, h->name, name + 1);
    memcpy(out + 1 + name + 1, proof, len + 1);
    return 1 + name + 1 + len;
}

static void *alloc(size_t size)
{
    void *p = calloc(1, size);
    if (p == NULL)
        abort();
    return p;
}

/* Names */

static void free_name(struct silt_grave *g)
{
    free(silt_outer(g, struct name, grave));
}

static void forget_name(struct name *n)
{
    struct silt_routes *r = n->all;
    assert(silt_list_empty(&n->waits));
    if (silt_map_find(&r->names, name_key(n)) == n) /* another one may have replaced it */
        (void)silt_map_remove(&r->names, name_key(n));
    silt_list_remove(&n->link);
    silt_preview_channel_leave(r->talk, &n->find);
    silt_loop_cancel(r->loop, &n->again);
    r->nnames--;
    silt_loop_bury(r->loop, &n->grave);
}

/* Callbacks may start other lookups; no route is evicted while callbacks run. */
static void answer_waits(struct name *n, enum silt_preview_say say, uint32_t lasts_s)
{
    struct silt_routes *r = n->all;
    struct silt_route *route = n->route;
    struct silt_link waits;
    silt_list_init(&waits);
    r->telling++;
    silt_list_each(it, &n->waits)
    {
        silt_list_remove(it);
        silt_list_append(&waits, it);
    }
    while (!silt_list_empty(&waits)) {
        struct silt_route_wait *w = silt_list_first(&waits, struct silt_route_wait, link);
        silt_list_remove(&w->link);
        w->on_found(w, say, say == SILT_PREVIEW_ROUTE ? route : NULL, lasts_s);
    }
    r->telling--;
}

/* Routes */

static void free_route(struct silt_grave *g)
{
    free(silt_outer(g, struct silt_route, grave));
}

static struct silt_route *new_route(struct silt_routes *r, uint64_t number, uint32_t sandbox)
{
    struct silt_route *route = alloc(sizeof(*route));
    route->all = r;
    route->number = number;
    route->sure = true;
    route->guest = silt_bandwidths_at(&r->guests, sandbox);
    route->grave.free = free_route;
    silt_list_init(&route->names);
    silt_list_init(&route->users);
    silt_list_init(&route->idle);
    silt_list_init(&route->link);
    silt_list_append(&r->list, &route->link);
    silt_map_put(&r->numbers, number_key(&route->number), route);
    r->count++;
    return route;
}

static void lose_number(struct silt_route *route)
{
    if (route->number != 0)
        (void)silt_map_remove(&route->all->numbers, number_key(&route->number));
    route->number = 0;
    route->sure = route->told = false;
}

static void forget_idle(struct silt_route *route)
{
    silt_list_each(it, &route->idle) route->all->close_idle(it);
}

/* Later requests look the name up again. */
static void forget_names(struct silt_route *route)
{
    silt_list_each(it, &route->names)
    {
        struct name *n = silt_outer(it, struct name, link);
        n->route = NULL;
        (void)silt_map_remove(&route->all->names, name_key(n));
    }
    while (!silt_list_empty(&route->names)) {
        struct name *n = silt_list_first(&route->names, struct name, link);
        silt_list_remove(&n->link);
        answer_waits(n, SILT_PREVIEW_UNKNOWN, 0);
        forget_name(n);
    }
}

static void forget_route(struct silt_route *route)
{
    struct silt_routes *r = route->all;
    assert(silt_list_empty(&route->users));
    if (route->told)
        silt_preview_channel_use(r->talk, route->number, 0);
    lose_number(route);
    forget_idle(route);
    forget_names(route);
    silt_list_remove(&route->link);
    silt_bandwidth_let_go(route->guest);
    r->count--;
    silt_loop_bury(r->loop, &route->grave);
}

void silt_route_drop(struct silt_route *route)
{
    struct silt_routes *r = route->all;
    r->telling++;
    lose_number(route);
    forget_names(route);
    while (!silt_list_empty(&route->users)) {
        struct silt_route_user *u = silt_list_first(&route->users, struct silt_route_user, link);
        silt_route_unuse(route, u);
        u->on_drop(u);
    }
    forget_route(route);
    r->telling--;
}

void silt_routes_drop_number(struct silt_routes *r, uint64_t number)
{
    struct silt_route *route = silt_map_find(&r->numbers, number_key(&number));
    if (route != NULL)
        silt_route_drop(route);
    silt_preview_channel_dropped(r->talk, number);
}

void silt_route_use(struct silt_route *route, struct silt_route_user *u)
{
    silt_list_append(&route->users, &u->link);
    route->guest->using ++;
    if (route->using ++ > 0 || route->told || !route->sure)
        return;
    route->told = true;
    silt_preview_channel_use(route->all->talk, route->number, 1);
}

/* siltd is told later that it is idle. */
void silt_route_unuse(struct silt_route *route, struct silt_route_user *u)
{
    struct silt_routes *r = route->all;
    silt_list_remove(&u->link);
    route->guest->using --;
    if (--route->using > 0)
        return;
    route->quiet_ms = r->loop->now_ms;
    silt_list_remove(&route->link);
    silt_list_append(&r->list, &route->link);
    if (r->sweep.place == 0)
        silt_loop_after(r->loop, &r->sweep, QUIET_MS);
}

/* A request waits for it to be found again. */
static bool is_awaited(struct silt_route *route)
{
    silt_list_each(it, &route->names)
    {
        if (!silt_list_empty(&silt_outer(it, struct name, link)->waits))
            return true;
    }
    return false;
}

/* Tells siltd about idle routes; forgets them if there are too many, or if this siltd does not know
 * them. */
static void on_sweep(struct silt_timer *t)
{
    struct silt_routes *r = silt_outer(t, struct silt_routes, sweep);
    bool again = false; /* once more */
    silt_list_each(it, &r->list)
    {
        struct silt_route *route = silt_outer(it, struct silt_route, link);
        if (route->using > 0 || is_awaited(route))
            continue;
        bool quiet = r->loop->now_ms - route->quiet_ms >= QUIET_MS;
        if (quiet && route->told) {
            route->told = false;
            silt_preview_channel_use(r->talk, route->number, 0);
        }
        again = again || !quiet;
        if (quiet && (r->count > ROUTES_MAX || !route->sure || silt_list_empty(&route->names)))
            forget_route(route);
    }
    if (again)
        silt_loop_after(r->loop, &r->sweep, QUIET_MS);
}

/* Finding */

static bool fill_find(struct silt_preview_channel_ask *a, struct silt_preview_request *q)
{
    const struct name *n = silt_outer(a, struct name, find);
    q->type = SILT_PREVIEW_FIND;
    q->body.find.form = (uint8_t)n->key[0];
    (void)snprintf(q->body.find.name, sizeof(q->body.find.name), "%s", name_of(n));
    (void)snprintf(q->body.find.proof, sizeof(q->body.find.proof), "%s", proof_of(n));
    return true;
}

/* Evicts the oldest name. */
static void forget_oldest(struct silt_route *route)
{
    size_t count = 0;
    silt_list_each(it, &route->names) count++;
    silt_list_each(it, &route->names)
    {
        struct name *n = silt_outer(it, struct name, link);
        if (count < EACH_MAX)
            return;
        if (!silt_list_empty(&n->waits) || n->find.open)
            continue;
        forget_name(n);
        count--;
    }
}

static void lead_to(struct name *n, struct silt_route *route)
{
    n->route = route;
    silt_list_remove(&n->link);
    forget_oldest(route);
    silt_list_append(&route->names, &n->link);
}

/* A former siltd's number that now means another port (the clock went back) is dropped. */
static struct silt_route *find_route(struct silt_routes *r, uint64_t number, uint32_t sandbox,
                                     uint16_t port)
{
    struct silt_route *route = silt_map_find(&r->numbers, number_key(&number));
    if (route == NULL || route->sure || (route->guest->sandbox == sandbox && route->port == port))
        return route;
    lose_number(route);
    return NULL;
}

/* The new siltd knows it, too. */
static void confirm(struct silt_route *route)
{
    if (route->sure)
        return;
    route->sure = true;
    route->told = route->using > 0;
    if (route->told)
        silt_preview_channel_use(route->all->talk, route->number, 1);
}

static void on_route(struct name *n, const struct silt_preview_answer *a)
{
    struct silt_routes *r = n->all;
    const struct silt_preview_route *told = &a->body.route;
    struct silt_route *route = find_route(r, a->route, told->sandbox, told->port);
    n->until_ms = told->lasts_s > 0 ? silt_clock_ms() + (int64_t)told->lasts_s * 1000 : 0;
    struct silt_route *former = n->route;
    if (route == NULL)
        route = new_route(r, a->route, told->sandbox);
    route->flags = told->flags;
    route->port = told->port;
    lead_to(n, route);
    confirm(route);
    if (former != NULL && former != route)
        silt_route_drop(former); /* its number is obsolete */
    answer_waits(n, SILT_PREVIEW_ROUTE, told->lasts_s);
    if (r->sweep.place == 0)
        silt_loop_after(r->loop, &r->sweep, QUIET_MS);
}

static void on_again(struct silt_timer *t)
{
    struct name *n = silt_outer(t, struct name, again);
    silt_preview_channel_ask(n->all->talk, &n->find);
}

static void on_find(struct silt_preview_channel_ask *ask, const struct silt_preview_answer *a,
                    int *fd)
{
    struct name *n = silt_outer(ask, struct name, find);
    (void)fd;
    if (a->type == SILT_PREVIEW_ROUTE && a->route != 0) {
        on_route(n, a);
        return;
    }
    enum silt_preview_say say = a->type == SILT_PREVIEW_LOCKED || a->type == SILT_PREVIEW_BUSY
                                    ? (enum silt_preview_say)a->type
                                    : SILT_PREVIEW_UNKNOWN;
    struct silt_route *route = n->route;
    if (route == NULL)
        (void)silt_map_remove(&n->all->names, name_key(n)); /* later requests ask again */
    else if (say == SILT_PREVIEW_BUSY)
        silt_loop_after(n->all->loop, &n->again, FIND_AGAIN_MS);
    answer_waits(n, say, 0);
    if (route == NULL)
        forget_name(n);
    else if (say != SILT_PREVIEW_BUSY)
        silt_route_drop(route); /* the name goes with it */
}

static struct name *new_name(struct silt_routes *r, const struct silt_host *h)
{
    struct name *n = alloc(sizeof(*n));
    n->all = r;
    n->find.fill = fill_find;
    n->find.on_answer = on_find;
    n->again.on_time = on_again;
    n->grave.free = free_name;
    n->key_len = make_key(h, h->proof, n->key);
    silt_list_init(&n->link);
    silt_list_init(&n->waits);
    silt_list_init(&n->find.link);
    silt_map_put(&r->names, name_key(n), n);
    r->nnames++;
    return n;
}

static struct name *find_name(struct silt_routes *r, const struct silt_host *h, const char *proof)
{
    char key[sizeof(((struct name *)0)->key)];
    struct name *n = silt_map_find(&r->names, (silt_slice){key, make_key(h, proof, key)});
    if (n == NULL || n->until_ms == 0 || n->until_ms > silt_clock_ms()
        || !silt_list_empty(&n->waits))
        return n;
    forget_name(n);
    return NULL;
}

/* A public port accepts any proof, so look it up without one first. */
static struct name *known_name(struct silt_routes *r, const struct silt_host *h)
{
    struct name *n = find_name(r, h, "");
    if (h->proof[0] == 0 || (n != NULL && n->route != NULL))
        return n;
    return find_name(r, h, h->proof);
}

/* Evicts a route that nobody uses; it can be found again. Names being looked up stay. */
static void make_room(struct silt_routes *r)
{
    if (r->nnames < NAMES_MAX || r->telling > 0)
        return;
    silt_list_each(it, &r->list)
    {
        struct silt_route *route = silt_outer(it, struct silt_route, link);
        if (route->using > 0 || silt_list_empty(&route->names))
            continue;
        forget_route(route);
        return;
    }
}

void silt_routes_find(struct silt_routes *r, const struct silt_host *h, struct silt_route_wait *w)
{
    struct name *n = known_name(r, h);
    silt_list_init(&w->link);
    if (n != NULL && n->route != NULL && n->route->sure) {
        int64_t left = n->until_ms > 0 ? (n->until_ms - silt_clock_ms()) / 1000 : 0;
        w->on_found(w, SILT_PREVIEW_ROUTE, n->route, left > 0 ? (uint32_t)left : 0);
        return;
    }
    if (n == NULL) {
        make_room(r);
        if (r->nnames >= NAMES_MAX) {
            w->on_found(w, SILT_PREVIEW_BUSY, NULL, 0);
            return;
        }
        n = new_name(r, h);
        if (w->dial != NULL)
            silt_preview_channel_ask_both(r->talk, &n->find, w->dial, w->wait_ms);
        else
            silt_preview_channel_ask(r->talk, &n->find);
    }
    silt_list_append(&n->waits, &w->link);
}

bool silt_routes_knows(struct silt_routes *r, const struct silt_host *h)
{
    const struct name *n = known_name(r, h);
    return n != NULL && n->route != NULL;
}

void silt_routes_leave(struct silt_route_wait *w)
{
    silt_list_remove(&w->link);
}

struct silt_route *silt_routes_hand(struct silt_routes *r, const struct silt_preview_answer *a)
{
    struct silt_route *route = find_route(r, a->route, a->body.hand.sandbox, a->body.hand.port);
    if (route != NULL)
        confirm(route);
    if (route != NULL || a->route == 0)
        return route;
    route = new_route(r, a->route, a->body.hand.sandbox);
    route->flags = a->body.hand.flags;
    route->port = a->body.hand.port;
    if (r->sweep.place == 0)
        silt_loop_after(r->loop, &r->sweep, QUIET_MS);
    return route;
}

/* Another siltd */

static void renew(struct silt_route *route)
{
    struct name *keeper = silt_list_first(&route->names, struct name, link);
    route->sure = route->told = false;
    if (route->using == 0) {
        forget_route(route);
        return;
    }
    silt_list_each(it, &route->names)
    {
        struct name *n = silt_outer(it, struct name, link);
        if (n != keeper && silt_list_empty(&n->waits))
            forget_name(n);
    }
    if (keeper == NULL)
        return; /* a connection that siltd handed over: forgotten when it ends */
    silt_loop_cancel(route->all->loop, &keeper->again);
    if (!keeper->find.open)
        silt_preview_channel_ask(route->all->talk, &keeper->find);
}

void silt_routes_renew(struct silt_routes *r)
{
    silt_list_each(it, &r->list) renew(silt_outer(it, struct silt_route, link));
}

void silt_routes_init(struct silt_routes *r, struct silt_loop *loop,
                      struct silt_preview_channel *talk, uint64_t bandwidth)
{
    *r = (struct silt_routes){.loop = loop, .talk = talk, .sweep = {.on_time = on_sweep}};
    silt_map_init(&r->names);
    silt_map_init(&r->numbers);
    silt_bandwidths_init(&r->guests, loop, bandwidth);
    silt_list_init(&r->list);
}
