/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/guess_limit.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    WRONG_MAX = 100, /* at once */
    FORGIVE_MS = 50, /* one each */
};

/* In IPv6 a /64 counts as one client. */
static uint64_t place_of(const struct silt_guess_limit *g, const struct sockaddr *who)
{
    uint64_t key = 0;
    const struct in6_addr *wide = &((const struct sockaddr_in6 *)(const void *)who)->sin6_addr;
    if (who->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(wide))
        memcpy(&key, &wide->s6_addr[12], 4);
    else if (who->sa_family == AF_INET6)
        memcpy(&key, wide, sizeof(key));
    else if (who->sa_family == AF_INET)
        key = ((const struct sockaddr_in *)(const void *)who)->sin_addr.s_addr;
    key = (key ^ g->seed) * 0x9e3779b97f4a7c15ULL;
    return (key ^ key >> 32) % SILT_GUESS_PLACES;
}

static uint32_t count_now(struct silt_guess_limit *g, uint64_t place, int64_t now_ms)
{
    int64_t forgiven = (now_ms - g->places[place].at_ms) / FORGIVE_MS;
    if (forgiven > 0) {
        g->places[place].count -=
            forgiven < g->places[place].count ? (uint32_t)forgiven : g->places[place].count;
        g->places[place].at_ms = now_ms;
    }
    return g->places[place].count;
}

void silt_guess_limit_init(struct silt_guess_limit *g)
{
    memset(g, 0, sizeof(*g));
    if (getrandom(&g->seed, sizeof(g->seed), 0) != sizeof(g->seed))
        abort();
}

bool silt_guess_limit_may(struct silt_guess_limit *g, const struct sockaddr *who, int64_t now_ms)
{
    return count_now(g, place_of(g, who), now_ms) < WRONG_MAX;
}

void silt_guess_limit_wrong(struct silt_guess_limit *g, const struct sockaddr *who, int64_t now_ms)
{
    uint64_t place = place_of(g, who);
    (void)count_now(g, place, now_ms);
    g->places[place].count++;
}
