/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/policy/policy.h"
#include "base/own.h"

#include <stdlib.h>

struct rule {
    enum silt_egress_kind kind;
    uint16_t low, high;
    silt_ip_prefix network;
    silt_slice name; /* of `names` */
};

struct silt_policy {
    size_t count;
    char *names;
    struct rule rules[];
};

enum { LABEL_MAX = 63 };

static bool is_label_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Labels separated by single dots. */
static bool is_name(silt_slice s)
{
    size_t label = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] == '.' ? label == 0 : !is_label_byte(s.data[i]))
            return false;
        label = s.data[i] == '.' ? 0 : label + 1;
        if (label > LABEL_MAX)
            return false;
    }
    return label > 0;
}

/* libc resolvers take a name whose last label is a number for an address. */
static bool is_numeric(silt_slice s)
{
    size_t at = s.len;
    while (at > 0 && s.data[at - 1] != '.')
        at--;
    if (s.len - at > 2 && s.data[at] == '0' && s.data[at + 1] == 'x')
        return true;
    for (; at < s.len; at++)
        if (s.data[at] < '0' || s.data[at] > '9')
            return false;
    return true;
}

bool silt_policy_clean(silt_slice text, char out[SILT_EGRESS_NAME])
{
    out[0] = 0;
    if (text.len > 0 && text.data[text.len - 1] == '.')
        text.len--;
    if (text.len == 0 || text.len >= SILT_EGRESS_NAME)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        out[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    out[text.len] = 0;
    silt_slice name = {out, text.len};
    if (is_name(name) && !is_numeric(name))
        return true;
    out[0] = 0;
    return false;
}

static int read_network(const struct silt_egress_rule *from, silt_ip_prefix *ret,
                        struct silt_error *e)
{
    silt_ip_prefix all = {.family = from->kind == SILT_EGRESS_CIDR4 ? 4 : 6}, own;
    own = all;
    own.bits = from->bits;
    memcpy(own.bytes, from->address, own.family == 4 ? 4 : 16);
    silt_ip_prefix cut = own;
    if (own.bits > silt_ip_prefix_size(&own))
        return silt_fail(e, SILT_INVALID, "a rule with a prefix of %u bits", own.bits);
    silt_ip_prefix_clear(&cut);
    if (memcmp(&cut, &own, sizeof(own)) != 0)
        return silt_fail(e, SILT_INVALID, "a rule with bits behind its prefix");
    *ret = own;
    return 0;
}

static int read_name(const struct silt_egress_rule *from, char *room, silt_slice *ret,
                     struct silt_error *e)
{
    silt_slice name = {from->name, strnlen(from->name, sizeof(from->name))};
    if (name.len == sizeof(from->name) || !is_name(name))
        return silt_fail(e, SILT_INVALID, "a rule without a name");
    memcpy(room, name.data, name.len);
    *ret = (silt_slice){room, name.len};
    return 0;
}

static int read_rule(const struct silt_egress_rule *from, char *room, struct rule *ret,
                     struct silt_error *e)
{
    *ret = (struct rule){.kind = from->kind, .low = from->low, .high = from->high};
    if (from->low == 0 || from->low > from->high)
        return silt_fail(e, SILT_INVALID, "a rule for ports %u to %u", from->low, from->high);
    switch ((enum silt_egress_kind)from->kind) {
    case SILT_EGRESS_EXACT:
    case SILT_EGRESS_BELOW:
        return read_name(from, room, &ret->name, e);
    case SILT_EGRESS_CIDR4:
    case SILT_EGRESS_CIDR6:
        return read_network(from, &ret->network, e);
    case SILT_EGRESS_ANY:
        return 0;
    case SILT_EGRESS_KIND_MAX:
        break;
    }
    return silt_fail(e, SILT_INVALID, "a rule of kind %u", from->kind);
}

int silt_policy_new(const struct silt_egress_rule *rules, size_t count, struct silt_policy **ret,
                    struct silt_error *e)
{
    if (count > SILT_EGRESS_RULES_MAX)
        return silt_fail(e, SILT_INVALID, "%zu rules, at most %d", count, SILT_EGRESS_RULES_MAX);
    size_t bytes = 0, used = 0;
    for (size_t i = 0; i < count; i++)
        bytes += strnlen(rules[i].name, sizeof(rules[i].name));
    struct silt_policy *p = calloc(1, sizeof(*p) + count * sizeof(p->rules[0]));
    if (p == NULL || (p->names = malloc(bytes + 1)) == NULL)
        abort();
    p->count = count;
    for (size_t i = 0; i < count; i++) {
        if (read_rule(&rules[i], p->names + used, &p->rules[i], e) < 0) {
            silt_policy_free(p);
            return -1;
        }
        used += p->rules[i].name.len;
    }
    *ret = p;
    return 0;
}

void silt_policy_free(struct silt_policy *p)
{
    if (p == NULL)
        return;
    free(p->names);
    free(p);
}

static bool is_below(silt_slice name, silt_slice suffix)
{
    return name.len > suffix.len + 1 && name.data[name.len - suffix.len - 1] == '.'
           && memcmp(name.data + name.len - suffix.len, suffix.data, suffix.len) == 0;
}

static bool covers_name(const struct rule *r, silt_slice name)
{
    return r->kind == SILT_EGRESS_ANY
           || (r->kind == SILT_EGRESS_EXACT && silt_slice_eq(r->name, name))
           || (r->kind == SILT_EGRESS_BELOW && is_below(name, r->name));
}

static bool covers_port(const struct rule *r, uint16_t port)
{
    return port >= r->low && port <= r->high;
}

enum silt_policy_verdict silt_policy_name(const struct silt_policy *p, silt_slice name,
                                          uint16_t port)
{
    enum silt_policy_verdict best = SILT_POLICY_NO;
    for (size_t i = 0; i < p->count && best != SILT_POLICY_YES; i++)
        if (covers_name(&p->rules[i], name))
            best = covers_port(&p->rules[i], port) ? SILT_POLICY_YES : SILT_POLICY_OTHER_PORT;
    return best;
}

bool silt_policy_names(const struct silt_policy *p, silt_slice name)
{
    for (size_t i = 0; i < p->count; i++)
        if (covers_name(&p->rules[i], name))
            return true;
    return false;
}

enum silt_policy_verdict silt_policy_address(const struct silt_policy *p,
                                             const silt_ip_prefix *address, uint16_t port)
{
    enum silt_policy_verdict best = SILT_POLICY_NO;
    for (size_t i = 0; i < p->count && best != SILT_POLICY_YES; i++)
        if ((p->rules[i].kind == SILT_EGRESS_CIDR4 || p->rules[i].kind == SILT_EGRESS_CIDR6)
            && silt_ip_prefix_covers(&p->rules[i].network, address))
            best = covers_port(&p->rules[i], port) ? SILT_POLICY_YES : SILT_POLICY_OTHER_PORT;
    return best;
}
