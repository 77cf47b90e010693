/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/policy/link_table.h"
#include "base/clock.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum { TOKEN = 1000, TOKENS_MAX = 40 * TOKEN, TOKENS_PER_MS = 20 /* 20 a second */ };

int silt_link_table_init(struct silt_link_table *l, const char *pool4, const char *pool6,
                         const char *open, struct silt_error *e)
{
    *l = (struct silt_link_table){0};
    silt_map_init(&l->map);
    if (getrandom(&l->run, sizeof(l->run), 0) != sizeof(l->run))
        return silt_fail_errno(e, "get a random number");
    if (silt_plan_make(pool4, pool6, 0, &l->plan, e) < 0)
        return -1;
    return silt_ip_prefix_list_parse(silt_slice_of(open), &l->open, e);
}

static void free_link(struct silt_egress_link *link)
{
    silt_policy_free(link->policy);
    silt_dns_pins_fini(&link->pins);
    free(link);
}

void silt_link_table_fini(struct silt_link_table *l)
{
    struct silt_egress_link *link;
    for (size_t at = 0; (link = silt_map_next(&l->map, &at)) != NULL;)
        free_link(link);
    silt_map_fini(&l->map);
}

uint32_t silt_link_table_number(const struct silt_link_table *l,
                                const struct sockaddr_storage *from)
{
    silt_ip_prefix p = silt_link_table_address(from);
    silt_ip ip = {.family = p.family == 4 ? AF_INET : AF_INET6};
    memcpy(ip.bytes, p.bytes, sizeof(ip.bytes));
    return silt_plan_number(&l->plan, &ip);
}

static silt_slice key(const uint32_t *number)
{
    return (silt_slice){(const char *)number, sizeof(*number)};
}

struct silt_egress_link *silt_link_table_find(const struct silt_link_table *l, uint32_t number)
{
    return silt_map_find(&l->map, key(&number));
}

struct silt_egress_link *silt_link_table_at(struct silt_link_table *l, uint32_t number)
{
    struct silt_egress_link *link = silt_link_table_find(l, number);
    if (link != NULL)
        return link;
    if (number == 0 || l->map.used >= SILT_LINK_TABLE_MAX)
        return NULL;
    link = calloc(1, sizeof(*link));
    if (link == NULL)
        abort();
    link->number = number;
    link->counts.run = l->run;
    link->tokens = TOKENS_MAX;
    silt_dns_pins_init(&link->pins, &l->pins);
    silt_list_init(&link->passages);
    silt_map_put(&l->map, key(&link->number), link);
    return link;
}

void silt_link_table_drop(struct silt_link_table *l, struct silt_egress_link *link)
{
    (void)silt_map_remove(&l->map, key(&link->number));
    free_link(link);
}

/* One sandbox cannot take all places, and the last quarter is reserved for sandboxes with few. */
bool silt_places_left(const struct silt_places *p, size_t all, size_t own)
{
    if (all >= p->most || (p->each != 0 && own >= p->each))
        return false;
    return all < p->most - p->most / 4 || own < p->few;
}

static bool take_token(struct silt_egress_link *link, int64_t now)
{
    int64_t grown = (now - link->counted_ms) * TOKENS_PER_MS;
    link->counted_ms = now;
    link->tokens = link->tokens + grown > TOKENS_MAX ? TOKENS_MAX : link->tokens + grown;
    if (link->tokens < TOKEN)
        return false;
    link->tokens -= TOKEN;
    return true;
}

void silt_link_table_refuse(struct silt_link_table *l, struct silt_egress_link *link,
                            struct silt_egress_refusal *r)
{
    link->counts.refused++;
    r->wall_ms = silt_clock_wall_ms();
    r->lost = link->lost;
    bool told = take_token(link, silt_clock_ms()) && l->tell != NULL
                && l->tell(l->context, link->number, r);
    link->lost = told ? 0 : link->lost + 1;
}

silt_ip_prefix silt_link_table_address(const struct sockaddr_storage *at)
{
    silt_ip_prefix p = {.family = at->ss_family == AF_INET ? 4 : 6};
    p.bits = (uint8_t)silt_ip_prefix_size(&p);
    if (p.family == 4)
        memcpy(p.bytes, &((const struct sockaddr_in *)(const void *)at)->sin_addr, 4);
    else
        memcpy(p.bytes, &((const struct sockaddr_in6 *)(const void *)at)->sin6_addr, 16);
    return p;
}

uint16_t silt_link_table_port(const struct sockaddr_storage *at)
{
    return ntohs(at->ss_family == AF_INET
                     ? ((const struct sockaddr_in *)(const void *)at)->sin_port
                     : ((const struct sockaddr_in6 *)(const void *)at)->sin6_port);
}

void silt_link_table_put(struct silt_egress_refusal *r, const silt_ip_prefix *address,
                         uint16_t port)
{
    r->family = address->family;
    r->port = port;
    memcpy(r->address, address->bytes, sizeof(r->address));
}
