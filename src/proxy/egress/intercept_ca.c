/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/intercept_ca.h"
#include "base/clock.h"
#include "base/own.h"
#include "http/mint.h"

#include <stdio.h>

enum {
    DAY_S = 24 * 3600,
    LEAF_S = 30 * DAY_S,
    TOKEN = 1000, /* one new certificate: blocks the loop for about a millisecond */
    TOKENS_PER_MS = 20,
    TOKENS_MAX = 2 * SILT_LEAVES_EACH_MAX * TOKEN,
};

struct leaf {
    struct silt_link link, own;          /* of all; of its authority, oldest first */
    struct silt_intercept_ca *authority; /* borrowed */
    int64_t until_s;
    struct silt_tls_identity *identity;
    char name[SILT_EGRESS_NAME];
};

struct silt_intercept_ca {
    struct silt_intercept_cas *all; /* borrowed */
    uint64_t number;
    struct silt_egress_authority blob;
    struct silt_mint *mint;
    struct silt_map leaves;
    struct silt_link order;
    int64_t tokens, counted_ms;
};

static int64_t now_s(void)
{
    return silt_clock_wall_ms() / 1000;
}

/* Leaves */

static void free_leaf(struct leaf *l)
{
    struct silt_intercept_ca *a = l->authority;
    (void)silt_map_remove(&a->leaves, silt_slice_of(l->name));
    silt_list_remove(&l->link);
    silt_list_remove(&l->own);
    a->all->nleaves--;
    silt_tls_identity_free(l->identity);
    free(l);
}

static void make_room(struct silt_intercept_ca *a)
{
    if (a->leaves.used >= SILT_LEAVES_EACH_MAX)
        free_leaf(silt_list_first(&a->order, struct leaf, own));
    if (a->all->nleaves >= SILT_LEAVES_MAX)
        free_leaf(silt_list_first(&a->all->leaves, struct leaf, link));
}

static int sign(const struct silt_intercept_ca *a, const char *name, int64_t until_s,
                struct silt_tls_identity **ret, struct silt_error *e)
{
    struct silt_egress_authority pem;
    if (silt_mint_sign(a->mint, name, until_s, &pem, e) < 0)
        return -1;
    return silt_tls_identity_new((silt_slice){pem.certificate, pem.certificate_len},
                                 (silt_slice){pem.key, pem.key_len}, ret, e);
}

static bool take_token(struct silt_intercept_ca *a)
{
    int64_t now = silt_clock_ms();
    int64_t tokens = a->tokens + (now - a->counted_ms) * TOKENS_PER_MS;
    a->counted_ms = now;
    a->tokens = tokens < TOKENS_MAX ? tokens : TOKENS_MAX;
    if (a->tokens < TOKEN)
        return false;
    a->tokens -= TOKEN;
    return true;
}

static int add_leaf(struct silt_intercept_ca *a, const char *name, struct leaf **ret,
                    struct silt_error *e)
{
    struct silt_tls_identity *identity;
    int64_t until_s = now_s() + LEAF_S;
    if (!take_token(a))
        return silt_fail(e, SILT_LIMIT, "too many new names at once");
    if (sign(a, name, until_s, &identity, e) < 0)
        return silt_because(e, "certificate for %s", name);
    make_room(a);
    struct leaf *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    *l = (struct leaf){.authority = a, .until_s = until_s, .identity = identity};
    (void)snprintf(l->name, sizeof(l->name), "%s", name);
    silt_list_init(&l->link);
    silt_list_init(&l->own);
    silt_list_append(&a->all->leaves, &l->link);
    silt_list_append(&a->order, &l->own);
    silt_map_put(&a->leaves, silt_slice_of(l->name), l);
    a->all->nleaves++;
    *ret = l;
    return 0;
}

int silt_intercept_ca_leaf(struct silt_intercept_ca *a, const char *name,
                           const struct silt_tls_identity **ret, struct silt_error *e)
{
    struct leaf *l = silt_map_find(&a->leaves, silt_slice_of(name));
    if (l != NULL && l->until_s - now_s() < DAY_S) {
        free_leaf(l);
        l = NULL;
    }
    if (l == NULL && add_leaf(a, name, &l, e) < 0)
        return -1;
    silt_list_remove(&l->link);
    silt_list_remove(&l->own);
    silt_list_append(&a->all->leaves, &l->link);
    silt_list_append(&a->order, &l->own);
    *ret = l->identity;
    return 0;
}

/* All of them */

static silt_slice key_of(const uint64_t *number)
{
    return (silt_slice){(const char *)number, sizeof(*number)};
}

static void free_authority(struct silt_intercept_ca *a)
{
    while (!silt_list_empty(&a->order))
        free_leaf(silt_list_first(&a->order, struct leaf, own));
    silt_map_fini(&a->leaves);
    silt_mint_close(a->mint);
    free(a);
}

static int fill(struct silt_intercept_ca *a, const struct silt_egress_authority *given,
                struct silt_error *e)
{
    if (given != NULL)
        a->blob = *given;
    else if (silt_mint_authority(&a->blob, e) < 0)
        return -1;
    return silt_mint_open(&a->blob, &a->mint, e);
}

void silt_intercept_cas_init(struct silt_intercept_cas *all)
{
    *all = (struct silt_intercept_cas){0};
    silt_map_init(&all->map);
    silt_list_init(&all->leaves);
}

void silt_intercept_cas_fini(struct silt_intercept_cas *all)
{
    size_t at = 0;
    for (struct silt_intercept_ca *a; (a = silt_map_next(&all->map, &at)) != NULL;)
        free_authority(a);
    silt_map_fini(&all->map);
}

struct silt_intercept_ca *silt_intercept_cas_find(const struct silt_intercept_cas *all,
                                                  uint64_t number)
{
    return silt_map_find(&all->map, key_of(&number));
}

int silt_intercept_cas_at(struct silt_intercept_cas *all, uint64_t number,
                          const struct silt_egress_authority *given, struct silt_intercept_ca **ret,
                          struct silt_error *e)
{
    *ret = silt_intercept_cas_find(all, number);
    if (*ret != NULL)
        return 0;
    if (all->map.used >= SILT_INTERCEPT_CAS_MAX)
        return silt_fail(e, SILT_LIMIT, "more than %d authorities", SILT_INTERCEPT_CAS_MAX);
    struct silt_intercept_ca *a = calloc(1, sizeof(*a));
    if (a == NULL)
        abort();
    a->all = all;
    a->number = number;
    a->tokens = TOKENS_MAX;
    a->counted_ms = silt_clock_ms();
    silt_map_init(&a->leaves);
    silt_list_init(&a->order);
    if (fill(a, given, e) < 0) {
        free_authority(a);
        return -1;
    }
    silt_map_put(&all->map, key_of(&a->number), a);
    *ret = a;
    return 0;
}

void silt_intercept_cas_drop(struct silt_intercept_cas *all, uint64_t number)
{
    struct silt_intercept_ca *a = silt_map_remove(&all->map, key_of(&number));
    if (a != NULL)
        free_authority(a);
}

const struct silt_egress_authority *silt_intercept_ca_blob(const struct silt_intercept_ca *a)
{
    return &a->blob;
}
