/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network/denials.h"
#include "base/ip_prefix.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS_MS = 60000, EVENTS_MAX = 20 }; /* per sandbox */

static const char *const protocols[SILT_EGRESS_PROTOCOL_MAX] = {
    [SILT_EGRESS_TCP] = "tcp",
    [SILT_EGRESS_UDP] = "udp",
    [SILT_EGRESS_ICMP] = "icmp",
    [SILT_EGRESS_DNS] = "dns",
};

static const struct {
    const char *name, *message;
} reasons[SILT_REFUSED_REASON_MAX] = {
    [SILT_REFUSED_MODE] = {"mode", "the sandbox's mode carries nothing of this kind"},
    [SILT_REFUSED_CLOSED] =
        {"closed_network",
         "an address of this machine, of a private or special network, or of another sandbox"},
    [SILT_REFUSED_NAME] = {"name_not_allowed", "no rule names it"},
    [SILT_REFUSED_PORT] = {"port_not_allowed", "a rule names it, for other ports"},
    [SILT_REFUSED_ADDRESS] =
        {"address_not_allowed",
         "no rule names this address, and no allowed name was answered with it"},
    [SILT_REFUSED_MISMATCH] = {"name_mismatch",
                               "an allowed name, at an address that is not its own"},
    [SILT_REFUSED_NAMELESS] = {"no_name",
                               "TLS without a server name, or HTTP without a usable Host"},
    [SILT_REFUSED_SECOND] = {"other_host", "a later request on the connection is for another host"},
    [SILT_REFUSED_PROTOCOL] = {"unknown_protocol", "nobody can tell to whom it talks"},
    [SILT_REFUSED_ANSWER] = {"closed_answer", "the name's answer has an address that is closed"},
    [SILT_REFUSED_LIMIT] = {"too_many_connections", "the sandbox has too many connections"},
    [SILT_REFUSED_NO_POLICY] = {"no_policy", "the rules have not arrived yet"},
    [SILT_REFUSED_BY_OTHER] = {"worker", "the worker that the container belongs to refused it"},
    [SILT_REFUSED_NOBODY] = {"nobody", "the worker that the container belongs to is not there"},
    [SILT_REFUSED_SILENCE] = {"silence", "it said too little too late for us to tell"},
};

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

struct silt_denial *silt_denials_note(struct silt_denials *l, const struct silt_egress_refusal *r,
                                      int64_t now_ms)
{
    if (!is_sound(r))
        return NULL;
    struct silt_denial *known = find(l, r);
    if (known == NULL)
        known = add(l, r, now_ms);
    silt_list_remove(&known->link);
    silt_list_append(&l->list, &known->link);
    known->count++;
    known->last_ms = now_ms;
    l->lost += r->lost;
    return known;
}

bool silt_denials_is_event(struct silt_denials *l, struct silt_denial *r, uint32_t *ret_omitted)
{
    if (r->event_ms > 0 && r->last_ms - r->event_ms < EVENTS_MS)
        return false; /* the destination has been reported */
    if (r->last_ms - l->events_ms >= EVENTS_MS) {
        l->events_ms = r->last_ms;
        l->events = 0;
    }
    r->event_ms = r->last_ms;
    if (l->events >= EVENTS_MAX) {
        l->omitted++;
        return false;
    }
    l->events++;
    *ret_omitted = l->omitted;
    l->omitted = 0;
    return true;
}

/* null if there is none. */
static void add_text(struct silt_buf *b, const char *key, const char *text)
{
    silt_json_key(b, silt_slice_of(key));
    if (text[0] != 0)
        silt_json_string(b, silt_slice_of(text));
    else
        silt_json_null(b);
}

void silt_denial_write(struct silt_buf *b, const struct silt_denial *r)
{
    char address[SILT_IP_PREFIX_TEXT] = "";
    silt_ip_prefix p = {.family = r->family, .bits = r->family == 4 ? 32 : 128};
    memcpy(p.bytes, r->address, sizeof(p.bytes));
    if (r->family != 0)
        silt_ip_prefix_text(&p, address);
    add_text(b, "destination", address);
    silt_json_key(b, SILT_LIT("port"));
    if (r->port != 0)
        silt_json_u64(b, r->port);
    else
        silt_json_null(b);
    add_text(b, "protocol", protocols[r->protocol]);
    add_text(b, "name", r->name);
    add_text(b, "reason", reasons[r->reason].name);
    add_text(b, "message", reasons[r->reason].message);
}
