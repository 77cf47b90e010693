/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/names.h"
#include "base/clock.h"
#include "engine/without.h"
#include "proxy/answer.h"

#include <stdio.h>

static void refuse(const struct silt_names_asker *a, struct silt_egress_link *link,
                   const struct silt_dns_question *q, struct silt_egress_refusal *r)
{
    r->protocol = SILT_EGRESS_DNS;
    (void)snprintf(r->name, sizeof(r->name), "%s", q->name);
    silt_links_refuse(a->links, link, r);
}

static bool is_named(const struct silt_egress_link *link, const struct silt_dns_question *q)
{
    char name[SILT_EGRESS_NAME];
    if (silt_without("allow_names"))
        return true;
    return silt_policy_clean(silt_slice_of(q->name), name)
           && silt_policy_names(link->policy, silt_slice_of(name));
}

int silt_names_ask(const struct silt_names_asker *a, const struct silt_dns_question *q,
                   char *message, size_t *len)
{
    struct silt_egress_link *link = silt_links_at(a->links, a->link);
    struct silt_egress_refusal r = {.reason = SILT_REFUSED_NO_POLICY};
    if (link != NULL)
        link->counts.questions++;
    if (!a->allow)
        return SILT_NAMES_ASK;
    if (link == NULL)
        return SILT_DNS_REFUSED;
    if (link->policy == NULL || !is_named(link, q)) {
        r.reason = link->policy == NULL ? SILT_REFUSED_NO_POLICY : SILT_REFUSED_NAME;
        refuse(a, link, q, &r);
        return SILT_DNS_REFUSED;
    }
    if (q->type == SILT_DNS_HTTPS || q->type == SILT_DNS_SVCB)
        return 0; /* they lead to hellos that nobody can read */
    *len = silt_dns_question_strip(message, *len, q);
    return SILT_NAMES_ASK;
}

static void pin(struct silt_egress_link *link, const struct silt_dns_question *q,
                const struct silt_dns_answer *got)
{
    for (size_t i = 0; i < got->count; i++)
        silt_pins_add(&link->pins, silt_slice_of(q->name), &got->list[i], got->ttl_s,
                      silt_clock_ms());
}

/* While the question was out, the link may have gone or changed. */
size_t silt_names_answer(const struct silt_names_asker *a, const struct silt_dns_question *q,
                         char *message, size_t len)
{
    struct silt_egress_link *link = silt_links_find(a->links, a->link);
    struct silt_dns_answer got;
    struct silt_error e;
    if (silt_dns_answer_read(message, len, q, &a->links->open, a->allow ? SILT_PINS_MOST_S : 0,
                             &got, &e)
        < 0)
        return 0;
    if (a->allow && (link == NULL || link->policy == NULL || !is_named(link, q)))
        return silt_dns_answer_empty(message, q, SILT_DNS_REFUSED);
    if (a->allow)
        pin(link, q, &got);
    if (got.closed == 0)
        return len;
    struct silt_egress_refusal r = {.reason = SILT_REFUSED_ANSWER};
    silt_links_put(&r, &got.first, 0);
    if (link != NULL)
        refuse(a, link, q, &r);
    return silt_dns_answer_write(message, len, q, &got);
}
