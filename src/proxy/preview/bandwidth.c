/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/bandwidth.h"
#include "base/clock.h"

#include <stdlib.h>

enum { REFILL_MS = 20, BURST_LEAST = 4096 };

static silt_slice key_of(const uint32_t *sandbox)
{
    return (silt_slice){(const char *)sandbox, sizeof(*sandbox)};
}

static void on_refill(struct silt_timer *t)
{
    struct silt_bandwidth *g = silt_outer(t, struct silt_bandwidth, refill);
    struct silt_link ready;
    silt_list_init(&ready);
    silt_list_each(it, &g->waits)
    {
        silt_list_remove(it);
        silt_list_append(&ready, it);
    }
    while (!silt_list_empty(&ready)) {
        struct silt_bandwidth_wait *w = silt_list_first(&ready, struct silt_bandwidth_wait, link);
        silt_list_remove(&w->link);
        w->on_tokens(w);
    }
}

struct silt_bandwidth *silt_bandwidths_at(struct silt_bandwidths *all, uint32_t sandbox)
{
    struct silt_bandwidth *g = silt_map_find(&all->map, key_of(&sandbox));
    if (g == NULL) {
        g = calloc(1, sizeof(*g));
        if (g == NULL)
            abort();
        g->sandbox = sandbox;
        g->all = all;
        g->refill.on_time = on_refill;
        silt_list_init(&g->waits);
        silt_map_put(&all->map, key_of(&g->sandbox), g);
    }
    g->routes++;
    return g;
}

void silt_bandwidth_let_go(struct silt_bandwidth *g)
{
    if (--g->routes > 0)
        return;
    (void)silt_map_remove(&g->all->map, key_of(&g->sandbox));
    silt_loop_cancel(g->all->loop, &g->refill);
    free(g);
}

size_t silt_bandwidth_allow(struct silt_bandwidth *g, enum silt_bandwidth_way way, size_t want)
{
    uint64_t rate = g->all->bandwidth;
    __typeof__(&g->buckets[0]) b = &g->buckets[way];
    if (rate == 0)
        return want;
    int64_t now = silt_clock_ms(), most = (int64_t)(rate / 10 + BURST_LEAST);
    int64_t passed = now - b->at_ms < 1000 ? now - b->at_ms : 1000;
    b->tokens += (int64_t)(rate * (uint64_t)passed / 1000);
    b->tokens = b->tokens < most ? b->tokens : most;
    b->at_ms = now;
    if (b->tokens <= 0)
        return 0;
    return (size_t)b->tokens < want ? (size_t)b->tokens : want;
}

void silt_bandwidth_spend(struct silt_bandwidth *g, enum silt_bandwidth_way way, size_t bytes)
{
    if (g->all->bandwidth > 0)
        g->buckets[way].tokens -= (int64_t)bytes;
}

void silt_bandwidth_wait(struct silt_bandwidth *g, struct silt_bandwidth_wait *w)
{
    silt_list_remove(&w->link);
    silt_list_append(&g->waits, &w->link);
    if (g->refill.place == 0)
        silt_loop_after(g->all->loop, &g->refill, REFILL_MS);
}

void silt_bandwidths_init(struct silt_bandwidths *all, struct silt_loop *loop, uint64_t bandwidth)
{
    *all = (struct silt_bandwidths){.loop = loop, .bandwidth = bandwidth};
    silt_map_init(&all->map);
}
