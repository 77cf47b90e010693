/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns/name_policy.h"
#include "base/glob.h"
#include "base/clock.h"
#include "base/test_switch.h"
#include "proxy/dns/answer.h"

#include <stdio.h>

enum { CLASS_IN = 1, TYPE_IXFR = 251, TYPE_AXFR = 252, MADE_UP_S = 60, AUTHORITATIVE = 4 };

/* Pattern matching budget of each intercepted sandbox: about 2 % of a processor. */
enum { STEPS_PER_MS = 20 << 10, STEPS_MAX = 2000 * STEPS_PER_MS };

static void refuse(const struct silt_name_policy_asker *a, struct silt_egress_link *link,
                   const struct silt_dns_question *q, struct silt_egress_refusal *r)
{
    r->protocol = SILT_EGRESS_DNS;
    (void)snprintf(r->name, sizeof(r->name), "%s", q->name);
    silt_link_table_refuse(a->links, link, r);
}

static bool is_named(const struct silt_egress_link *link, const struct silt_dns_question *q)
{
    char name[SILT_EGRESS_NAME];
    if (silt_without("allow_names"))
        return true;
    return silt_policy_clean(silt_slice_of(q->name), name)
           && silt_policy_names(link->policy, silt_slice_of(name));
}

/* Queries about the resolver itself (class CHAOS) and zone transfers: the resolver trusts this
 * machine, not its sandboxes. */
static bool is_nosy(const struct silt_dns_question *q)
{
    return q->class != CLASS_IN || q->type == TYPE_IXFR || q->type == TYPE_AXFR;
}

/* The label at the end, without its dot. */
static silt_slice take_last(silt_slice *name)
{
    size_t at = name->len;
    while (at > 0 && name->data[at - 1] != '.')
        at--;
    silt_slice last = {name->data + at, name->len - at};
    name->len = at > 0 ? at - 1 : 0;
    return last;
}

static bool add_label(silt_slice label, silt_ip_prefix *p)
{
    static const char digits[] = "0123456789abcdef";
    struct silt_error ignored;
    bool hex = label.len == 1 && silt_is_any(label.data[0], digits);
    uint64_t n = 0;
    if (p->family == 4 && silt_slice_to_u64(label, 0, 255, &n, &ignored) < 0)
        return false;
    if (p->family == 6 && !hex)
        return false;
    if (p->family == 6)
        n = (uint64_t)(strchr(digits, label.data[0]) - digits) << (4 - p->bits % 8);
    p->bytes[p->bits / 8] |= (uint8_t)n;
    p->bits = (uint8_t)(p->bits + (p->family == 4 ? 8 : 4));
    return true;
}

/* The network that a reverse lookup such as "2.1.168.192.in-addr.arpa" is about. */
static bool read_reverse(silt_slice name, silt_ip_prefix *ret)
{
    silt_slice top = take_last(&name), kind = take_last(&name);
    *ret = (silt_ip_prefix){.family = silt_slice_eq(kind, SILT_LIT("ip6")) ? 6 : 4};
    if (!silt_slice_eq(top, SILT_LIT("arpa"))
        || (ret->family == 4 && !silt_slice_eq(kind, SILT_LIT("in-addr"))))
        return false;
    while (name.len > 0 && ret->bits < silt_ip_prefix_size(ret) && add_label(take_last(&name), ret))
        ;
    return ret->bits > 0;
}

/* Names of the machine and its local networks stay private (RFC 6303). */
static bool is_of_closed(const struct silt_link_table *l, const struct silt_dns_question *q)
{
    silt_ip_prefix network;
    return read_reverse(silt_slice_of(q->name), &network)
           && silt_ip_prefix_is_closed(&network, &l->open);
}

/* Intercepted sandboxes */

/* Placeholder addresses: connections to them reach silt-proxy like all others, which knows them by
 * name. */
static size_t make_up(const struct silt_name_policy_asker *a, const struct silt_dns_question *q,
                      char *message, size_t room)
{
    struct silt_dns_answer made = {.list = {{4, 32, {11, 0, 0, 1}}, {6, 128, {0xfd, [15] = 1}}},
                                   .ttl_s = MADE_UP_S};
    made.count = a->links->plan.ipv6 ? 2 : 1;
    size_t len = silt_dns_answer_write(message, room, q, &made);
    message[2] |= AUTHORITATIVE;
    return len;
}

/* A guest that exceeds its matching budget gets no answers, so that others are not slowed down. */
static bool is_answered_for(struct silt_intercept_names *c, const struct silt_dns_question *q)
{
    int64_t now = silt_clock_ms(), left = c->steps + (now - c->steps_ms) * STEPS_PER_MS, taken = 0;
    c->steps = left < STEPS_MAX ? left : STEPS_MAX;
    c->steps_ms = now;
    bool is = c->steps > 0
              && silt_glob_hosts_match((silt_slice){c->globs, c->globs_len}, silt_slice_of(q->name),
                                       &taken);
    c->steps -= taken;
    return is;
}

static int ask_captive(const struct silt_name_policy_asker *a, const struct silt_egress_link *link,
                       const struct silt_dns_question *q, char *message, size_t *len)
{
    if (link->names->internet && (q->type == SILT_DNS_HTTPS || q->type == SILT_DNS_SVCB))
        return 0; /* they announce ECH, which hides the server name */
    if (link->names->internet)
        return is_of_closed(a->links, q) ? SILT_DNS_NXDOMAIN : SILT_NAME_POLICY_ASK;
    if (!is_answered_for(link->names, q))
        return SILT_DNS_NXDOMAIN;
    *len = make_up(a, q, message, SILT_NAME_POLICY_ROOM);
    return SILT_NAME_POLICY_ANSWERED;
}

int silt_name_policy_ask(const struct silt_name_policy_asker *a, const struct silt_dns_question *q,
                         char *message, size_t *len)
{
    struct silt_egress_link *link = silt_link_table_at(a->links, a->link);
    struct silt_egress_refusal r = {.reason = SILT_REFUSED_NO_POLICY};
    if (link != NULL)
        link->counts.questions++;
    if (is_nosy(q))
        return SILT_DNS_REFUSED;
    if (a->captive)
        return link != NULL && link->names != NULL ? ask_captive(a, link, q, message, len)
                                                   : SILT_DNS_REFUSED;
    if (!a->allow)
        return is_of_closed(a->links, q) ? SILT_DNS_NXDOMAIN : SILT_NAME_POLICY_ASK;
    if (link == NULL)
        return SILT_DNS_REFUSED;
    if (link->policy == NULL || !is_named(link, q)) {
        r.reason = link->policy == NULL ? SILT_REFUSED_NO_POLICY : SILT_REFUSED_NAME;
        refuse(a, link, q, &r);
        return SILT_DNS_REFUSED;
    }
    if (q->type == SILT_DNS_HTTPS || q->type == SILT_DNS_SVCB)
        return 0; /* they announce ECH, which hides the server name */
    if (is_of_closed(a->links, q))
        return SILT_DNS_NXDOMAIN;
    *len = silt_dns_question_strip(message, *len, q);
    return SILT_NAME_POLICY_ASK;
}

static void pin(struct silt_egress_link *link, const struct silt_dns_question *q,
                const struct silt_dns_answer *got)
{
    for (size_t i = 0; i < got->count; i++)
        silt_dns_pins_add(&link->pins, silt_slice_of(q->name), &got->list[i], got->ttl_s,
                          silt_clock_ms());
}

/* The link may have gone or changed while the query was in flight. */
size_t silt_name_policy_answer(const struct silt_name_policy_asker *a,
                               const struct silt_dns_question *q, char *message, size_t len,
                               size_t room)
{
    struct silt_egress_link *link = silt_link_table_find(a->links, a->link);
    struct silt_dns_answer got;
    struct silt_error e;
    if (silt_dns_answer_read(message, len, q, &a->links->open, a->allow ? SILT_DNS_PINS_MOST_S : 0,
                             &got, &e)
        < 0)
        return 0;
    if (a->allow && (link == NULL || link->policy == NULL || !is_named(link, q)))
        return silt_dns_answer_empty(message, q, SILT_DNS_REFUSED);
    if (a->captive && (message[3] & 0xf) == SILT_DNS_NXDOMAIN && link != NULL && link->names != NULL
        && is_answered_for(link->names, q))
        return make_up(a, q, message, room);
    if (a->allow)
        pin(link, q, &got);
    if (got.closed == 0)
        return len;
    struct silt_egress_refusal r = {.reason = SILT_REFUSED_ANSWER};
    silt_link_table_put(&r, &got.first, 0);
    if (link != NULL)
        refuse(a, link, q, &r);
    return silt_dns_answer_write(message, len, q, &got);
}
