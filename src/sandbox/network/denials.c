/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network/denials.h"

#include <stdlib.h>
#include <string.h>

void silt_denials_init(struct silt_denials *l)
{
    *l = (struct silt_denials){0};
    silt_list_init(&l->list);
}

static void drop(struct silt_denials *l, struct silt_denial *r)
{
    silt_list_remove(&r->link);
    l->count--;
    free(r);
}

void silt_denials_fini(struct silt_denials *l)
{
    silt_list_each(it, &l->list)
    {
        drop(l, silt_outer(it, struct silt_denial, link));
    }
}

static bool is_sound(const struct silt_egress_refusal *r)
{
    if (r->protocol == 0 || r->protocol >= SILT_EGRESS_PROTOCOL_MAX || r->reason == 0
        || r->reason >= SILT_REFUSED_REASON_MAX
        || (r->family != 0 && r->family != 4 && r->family != 6))
        return false;
    size_t len = strnlen(r->name, sizeof(r->name));
    for (size_t i = 0; i < len; i++)
        if (r->name[i] <= ' ' || r->name[i] > '~')
            return false;
    return len < sizeof(r->name);
}

static bool is_same(const struct silt_denial *a, const struct silt_egress_refusal *b)
{
    return a->protocol == b->protocol && a->reason == b->reason && a->family == b->family
           && a->port == b->port && memcmp(a->address, b->address, sizeof(b->address)) == 0
           && strcmp(a->name, b->name) == 0;
}

static struct silt_denial *find(struct silt_denials *l, const struct silt_egress_refusal *r)
{
    silt_list_each(it, &l->list)
    {
        struct silt_denial *known = silt_outer(it, struct silt_denial, link);
        if (is_same(known, r))
            return known;
    }
    return NULL;
}

static struct silt_denial *add(struct silt_denials *l, const struct silt_egress_refusal *r,
                               int64_t now_ms)
{
    size_t name = strlen(r->name) + 1;
    struct silt_denial *new = calloc(1, sizeof(*new) + name);
    if (new == NULL)
        abort();
    *new = (struct silt_denial){.first_ms = now_ms,
                                .protocol = r->protocol,
                                .reason = r->reason,
                                .family = r->family,
                                .port = r->port};
    memcpy(new->address, r->address, sizeof(new->address));
    memcpy(new->name, r->name, name);
    silt_list_init(&new->link);
    if (l->count == SILT_DENIALS_MAX)
        drop(l, silt_outer(l->list.next, struct silt_denial, link));
    l->count++;
    return new;
}

bool silt_denials_note(struct silt_denials *l, const struct silt_egress_refusal *r, int64_t now_ms)
{
    if (!is_sound(r))
        return false;
    struct silt_denial *known = find(l, r);
    if (known == NULL)
        known = add(l, r, now_ms);
    silt_list_remove(&known->link);
    silt_list_append(&l->list, &known->link);
    known->count++;
    known->last_ms = now_ms;
    l->lost += r->lost;
    return true;
}
