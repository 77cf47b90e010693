/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/upstream.h"
#include "proxy/core/relay.h"

#include <stdlib.h>

enum {
    KEEP_MS = 4000, /* many servers close idle connections after five seconds */
    SWEEP_MS = 1000,
    EACH_MAX = 128, /* idle ones of a route */
    ALL_MAX = 2048,
};

static void free_upstream(struct silt_grave *g)
{
    free(silt_outer(g, struct silt_upstream, grave));
}

static void unpark(struct silt_upstream *u)
{
    silt_list_remove(&u->link);
    silt_list_remove(&u->aged);
    u->route->nidle--;
    u->route = NULL;
    u->pool->count--;
}

void silt_upstream_close(struct silt_upstream *u, bool reset)
{
    if (u->route != NULL)
        unpark(u);
    if (reset)
        silt_relay_reset_at_close(u->watch.fd);
    silt_loop_forget(u->pool->loop, &u->watch);
    silt_close_fd(&u->watch.fd);
    u->pool->open--;
    u->on_ready = NULL;
    silt_loop_bury(u->pool->loop, &u->grave);
}

void silt_upstream_close_idle(struct silt_link *idle)
{
    silt_upstream_close(silt_outer(idle, struct silt_upstream, link), false);
}

/* An idle connection can only be closed by the service, or misbehave. */
static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_upstream *u = silt_outer(w, struct silt_upstream, watch);
    if (u->on_ready != NULL)
        u->on_ready(u, events);
    else
        silt_upstream_close(u, false);
}

struct silt_upstream *silt_upstream_new(struct silt_pool *p, int fd)
{
    struct silt_upstream *u = calloc(1, sizeof(*u));
    if (u == NULL)
        abort();
    u->pool = p;
    p->open++;
    u->watch = (struct silt_watch){.fd = fd, .on_ready = on_ready};
    u->grave.free = free_upstream;
    silt_list_init(&u->link);
    silt_list_init(&u->aged);
    silt_relay_keep_alive(fd);
    return u;
}

void silt_upstream_park(struct silt_upstream *u, struct silt_route *route)
{
    struct silt_pool *p = u->pool;
    if (route->nidle >= EACH_MAX || p->count >= ALL_MAX) {
        silt_upstream_close(u, false);
        return;
    }
    u->on_ready = NULL;
    u->owner = NULL;
    u->route = route;
    u->idle_ms = p->loop->now_ms;
    silt_list_append(&route->idle, &u->link);
    silt_list_append(&p->idle, &u->aged);
    route->nidle++;
    p->count++;
    silt_loop_watch(p->loop, &u->watch, EPOLLIN);
    if (p->sweep.place == 0)
        silt_loop_after(p->loop, &p->sweep, SWEEP_MS);
}

struct silt_upstream *silt_upstream_take(struct silt_route *route, int64_t age_ms)
{
    if (silt_list_empty(&route->idle))
        return NULL;
    struct silt_upstream *u = silt_outer(route->idle.prev, struct silt_upstream, link);
    if (u->pool->loop->now_ms - u->idle_ms > age_ms)
        return NULL;
    unpark(u);
    u->reused = true;
    u->reusable = false;
    return u;
}

static void on_sweep(struct silt_timer *t)
{
    struct silt_pool *p = silt_outer(t, struct silt_pool, sweep);
    silt_list_each(it, &p->idle)
    {
        struct silt_upstream *u = silt_outer(it, struct silt_upstream, aged);
        if (p->loop->now_ms - u->idle_ms < KEEP_MS)
            break;
        silt_upstream_close(u, false);
    }
    if (p->count > 0)
        silt_loop_after(p->loop, &p->sweep, SWEEP_MS);
}

bool silt_pool_has_room(struct silt_pool *p)
{
    if (p->open >= p->max && !silt_list_empty(&p->idle))
        silt_upstream_close(silt_list_first(&p->idle, struct silt_upstream, aged), false);
    return p->open < p->max;
}

void silt_pool_init(struct silt_pool *p, struct silt_loop *loop, size_t max)
{
    *p = (struct silt_pool){.loop = loop, .max = max, .sweep = {.on_time = on_sweep}};
    silt_list_init(&p->idle);
}
