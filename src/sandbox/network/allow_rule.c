/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network/allow_rule.h"
#include "base/own.h"

#include <stdio.h>

enum {
    NAME_MAX_ = SILT_EGRESS_NAME - 1,
    LABEL_MAX = 63,
    PORT_MAX = 65535,
    PORTS_TEXT = 16,
    SEEN_MAX = 1 << 20, /* memory while a list is parsed */
    TEXT_MAX = SILT_ALLOW_RULES_MAX * SILT_ALLOW_RULE_TEXT,
};

static int refuse(struct silt_error *e, const char *why)
{
    return silt_fail(e, SILT_INVALID, "%s", why);
}

static size_t count_byte(silt_slice s, char byte)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.data[i] == byte;
    return n;
}

static bool is_in(char c, char low, char high)
{
    return c >= low && c <= high;
}

/* Ports */

static int parse_port(silt_slice text, uint16_t *ret, struct silt_error *e)
{
    uint64_t n;
    if (silt_slice_to_u64(text, 1, PORT_MAX, &n, e) < 0)
        return refuse(e, "has a port that is no number from 1 to 65535; write :443 or :8000-9000");
    *ret = (uint16_t)n;
    return 0;
}

static int parse_ports(silt_slice text, struct silt_egress_rule *r, struct silt_error *e)
{
    silt_slice rest = text, low = {"", 0};
    bool two = silt_slice_has_byte(text, '-');
    (void)silt_slice_split(&rest, '-', &low);
    if (parse_port(low, &r->low, e) < 0 || parse_port(two ? rest : low, &r->high, e) < 0)
        return -1;
    return r->low <= r->high ? 0 : refuse(e, "has ports that end before they begin");
}

static void ports_text(const struct silt_egress_rule *r, char out[PORTS_TEXT])
{
    if (r->low == r->high)
        (void)snprintf(out, PORTS_TEXT, ":%u", r->low);
    else
        (void)snprintf(out, PORTS_TEXT, ":%u-%u", r->low, r->high);
}

/* Networks */

/* 10.1 or 0x7f000001 is meant as an address and must not become a name, since some resolvers would
 * take it for an address. */
static bool ends_in_number(silt_slice host)
{
    size_t at = host.len;
    while (at > 0 && host.data[at - 1] != '.')
        at--;
    silt_slice last = {host.data + at, host.len - at};
    bool hex = last.len >= 2 && last.data[0] == '0' && (last.data[1] | 0x20) == 'x';
    for (size_t i = 0; i < last.len && !hex; i++)
        if (!is_in(last.data[i], '0', '9'))
            return false;
    return last.len > 0;
}

static bool is_network(silt_slice host)
{
    silt_slice head = {"", 0};
    if (silt_slice_has_byte(host, ':'))
        return true;
    (void)silt_slice_split(&host, '/', &head);
    return ends_in_number(head);
}

static void network_text(const silt_ip_prefix *p, const char *ports, char out[SILT_ALLOW_RULE_TEXT])
{
    char text[SILT_IP_PREFIX_TEXT];
    silt_ip_prefix_text(p, text);
    if (p->family == 4 || ports[0] == 0) {
        (void)snprintf(out, SILT_ALLOW_RULE_TEXT, "%s%s", text, ports);
        return;
    }
    size_t address = strcspn(text, "/");
    (void)snprintf(out, SILT_ALLOW_RULE_TEXT, "[%.*s]%s%s", (int)address, text, text + address,
                   ports);
}

static int parse_network(silt_slice host, silt_slice ports, struct silt_allow_rule *ret,
                         struct silt_error *e)
{
    silt_ip_prefix p;
    char tail[PORTS_TEXT] = "";
    struct silt_egress_rule *r = &ret->parts[0];
    if (silt_ip_prefix_parse(host, &p, e) < 0)
        return -1;
    *r = (struct silt_egress_rule){.kind = p.family == 4 ? SILT_EGRESS_CIDR4 : SILT_EGRESS_CIDR6,
                                   .bits = p.bits,
                                   .low = 1,
                                   .high = PORT_MAX};
    memcpy(r->address, p.bytes, sizeof(r->address));
    if (ports.data != NULL && parse_ports(ports, r, e) < 0)
        return -1;
    if (ports.data != NULL)
        ports_text(r, tail);
    network_text(&p, tail, ret->text);
    ret->count = 1;
    return 0;
}

/* Names */

static int check_bytes(silt_slice name, struct silt_error *e)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if ((unsigned char)c >= 0x80)
            return refuse(e, "is not ASCII; write the name in its xn-- form (punycode)");
        if (is_in(c, 'A', 'Z'))
            return refuse(e, "has upper case letters; write the name in lower case");
        if (c == '*')
            return refuse(e, "has a * that is not its whole first part; *.example.com stands for "
                             "every name below example.com");
        if (c == '/')
            return refuse(e, "has a path; only hosts and ports can be allowed");
        if (!is_in(c, 'a', 'z') && !is_in(c, '0', '9') && c != '-' && c != '_' && c != '.')
            return refuse(e, "has a character that no name has; letters, digits, - and _ are fine");
    }
    return 0;
}

static int check_labels(silt_slice name, struct silt_error *e)
{
    silt_slice rest = name, label;
    if (name.len == 0)
        return refuse(e, "has no name; write it like example.com or *.example.com");
    if (name.len > NAME_MAX_)
        return refuse(e, "is longer than the 253 characters of a name");
    if (name.data[name.len - 1] == '.')
        return refuse(e, "ends with a dot; leave it out");
    while (silt_slice_split(&rest, '.', &label)) {
        if (label.len == 0)
            return refuse(e, "has an empty part between its dots");
        if (label.len > LABEL_MAX)
            return refuse(e, "has a part of more than 63 characters");
        if (label.data[0] == '-' || label.data[label.len - 1] == '-')
            return refuse(e, "has a part that begins or ends with -");
    }
    return 0;
}

/* *.com would allow nearly everything. */
static int check_name(silt_slice name, bool below, struct silt_error *e)
{
    if (check_bytes(name, e) < 0 || check_labels(name, e) < 0)
        return -1;
    if (ends_in_number(name))
        return refuse(e, "ends in a number, as addresses do and names do not");
    if (below && !silt_slice_has_byte(name, '.'))
        return refuse(e,
                      "would be a whole top-level domain; name one below it, like *.example.com");
    return 0;
}

static void fill_name(silt_slice name, bool below, struct silt_egress_rule *r)
{
    *r = (struct silt_egress_rule){.kind = below ? SILT_EGRESS_BELOW : SILT_EGRESS_EXACT};
    memcpy(r->name, name.data, name.len);
}

static int parse_name(silt_slice host, silt_slice ports, struct silt_allow_rule *ret,
                      struct silt_error *e)
{
    static const uint16_t usual[SILT_ALLOW_RULE_PARTS] = {80, 443};
    char tail[PORTS_TEXT] = "";
    bool below = silt_slice_starts(host, SILT_LIT("*."));
    silt_slice name = below ? (silt_slice){host.data + 2, host.len - 2} : host;
    if (silt_slice_eq(host, SILT_LIT("*")))
        return refuse(e, "would be everything; mode public is the whole internet");
    if (check_name(name, below, e) < 0)
        return -1;
    ret->count = ports.data != NULL ? 1 : SILT_ALLOW_RULE_PARTS;
    for (size_t i = 0; i < ret->count && i < SILT_ALLOW_RULE_PARTS; i++) {
        fill_name(name, below, &ret->parts[i]);
        ret->parts[i].low = ret->parts[i].high = usual[i];
    }
    if (ports.data != NULL) {
        if (parse_ports(ports, &ret->parts[0], e) < 0)
            return -1;
        ports_text(&ret->parts[0], tail);
    }
    (void)snprintf(ret->text, sizeof(ret->text), "%.*s%s", (int)host.len, host.data, tail);
    return 0;
}

/* Rules */

int silt_allow_rule_parse_parts(silt_slice host, silt_slice ports, struct silt_allow_rule *ret,
                                struct silt_error *e)
{
    ret->count = 0;
    return is_network(host) ? parse_network(host, ports, ret, e) : parse_name(host, ports, ret, e);
}

/* "[address]", "[address]/bits", "[address]:ports", "[address]/bits:ports" */
static int parse_brackets(silt_slice text, struct silt_allow_rule *ret, struct silt_error *e)
{
    static const char why[] = "is not like [2001:db8::1]:443 or [2001:db8::]/32:443";
    char host[SILT_IP_PREFIX_TEXT];
    silt_slice rest = {text.data + 1, text.len - 1}, address = {"", 0}, bits = {"", 0};
    bool closed = silt_slice_has_byte(rest, ']');
    (void)silt_slice_split(&rest, ']', &address);
    bool has_ports = silt_slice_has_byte(rest, ':');
    if (rest.len > 0 && rest.data[0] != ':')
        (void)silt_slice_split(&rest, ':', &bits);
    else if (has_ports)
        rest = (silt_slice){rest.data + 1, rest.len - 1};
    if (!closed || count_byte(address, ':') < 2 || silt_slice_has_byte(address, '/')
        || (bits.len > 0 && bits.data[0] != '/') || address.len + bits.len >= sizeof(host))
        return refuse(e, why);
    (void)snprintf(host, sizeof(host), "%.*s%.*s", (int)address.len, address.data, (int)bits.len,
                   bits.data);
    silt_slice joined = {host, address.len + bits.len};
    return silt_allow_rule_parse_parts(joined, has_ports ? rest : (silt_slice){NULL, 0}, ret, e);
}

static bool has_scheme(silt_slice text)
{
    for (size_t i = 0; i + 3 <= text.len; i++)
        if (memcmp(text.data + i, "://", 3) == 0)
            return true;
    return false;
}

int silt_allow_rule_parse(silt_slice text, struct silt_allow_rule *ret, struct silt_error *e)
{
    silt_slice rest = text, host = {"", 0}, none = {NULL, 0};
    if (text.len > 0 && memchr(text.data, 0, text.len) != NULL)
        return refuse(e, "has a NUL byte");
    if (has_scheme(text))
        return refuse(e, "is an address of the web; write the host alone, like example.com:443");
    if (text.len > 0 && text.data[0] == '[')
        return parse_brackets(text, ret, e);
    if (count_byte(text, ':') != 1)
        return silt_allow_rule_parse_parts(text, none, ret, e);
    (void)silt_slice_split(&rest, ':', &host);
    return silt_allow_rule_parse_parts(host, rest.len > 0 ? rest : SILT_LIT(""), ret, e);
}

/* Lists */

void silt_allow_rules_init(struct silt_allow_rules *l, const struct silt_ip_prefix_list *open)
{
    *l = (struct silt_allow_rules){.open = open};
    silt_buf_init(&l->text, TEXT_MAX);
    silt_map_init(&l->seen);
    silt_arena_init(&l->arena, SEEN_MAX);
}

void silt_allow_rules_fini(struct silt_allow_rules *l)
{
    silt_buf_fini(&l->text);
    silt_map_fini(&l->seen);
    silt_arena_fini(&l->arena);
}

static int check_closed(const struct silt_allow_rules *l, const struct silt_egress_rule *r,
                        struct silt_error *e)
{
    silt_ip_prefix p = {.family = r->kind == SILT_EGRESS_CIDR4 ? 4 : 6, .bits = r->bits};
    if (r->kind != SILT_EGRESS_CIDR4 && r->kind != SILT_EGRESS_CIDR6)
        return 0;
    memcpy(p.bytes, r->address, sizeof(p.bytes));
    if (!silt_ip_prefix_is_closed(&p, l->open))
        return 0;
    return silt_fail(e, SILT_DENIED,
                     "is in a private or special network, which is closed to sandboxes; the "
                     "operator can open it with the setting network.open");
}

int silt_allow_rules_add(struct silt_allow_rules *l, const struct silt_allow_rule *rule,
                         struct silt_error *e)
{
    silt_slice text = silt_slice_of(rule->text);
    const void *before = silt_map_find(&l->seen, text);
    if (l->count == SILT_ALLOW_RULES_MAX)
        return silt_fail(e, SILT_LIMIT, "is one too many; at most %d rules", SILT_ALLOW_RULES_MAX);
    if (check_closed(l, &rule->parts[0], e) < 0)
        return -1;
    if (before != NULL)
        return silt_fail(e, SILT_CONFLICT, "is the same as entry %zu; leave one of them out",
                         (size_t)(uintptr_t)before - 1);
    const char *key = silt_arena_dup(&l->arena, text);
    if (key == NULL)
        return silt_fail(e, SILT_LIMIT, "does not fit; all rules together are too long");
    l->count++;
    silt_map_put(&l->seen, (silt_slice){key, text.len}, (void *)(uintptr_t)l->count);
    silt_buf_add(&l->text, text);
    silt_buf_add_byte(&l->text, '\n');
    return 0;
}

int silt_allow_rules_add_all(struct silt_allow_rules *l, silt_slice text, struct silt_error *e)
{
    struct silt_allow_rule rule;
    silt_slice one;
    while (silt_slice_split(&text, ',', &one)) {
        one = silt_slice_trim(one);
        if (one.len > 0
            && (silt_allow_rule_parse(one, &rule, e) < 0 || silt_allow_rules_add(l, &rule, e) < 0))
            return silt_because(e, "'%.*s'", (int)(one.len < 64 ? one.len : 64), one.data);
    }
    return 0;
}

void silt_allow_rules_expand(silt_slice text, struct silt_buf *out)
{
    struct silt_allow_rule rule;
    struct silt_error e;
    silt_slice line;
    while (silt_slice_split(&text, '\n', &line))
        if (line.len > 0 && silt_allow_rule_parse(line, &rule, &e) == 0)
            silt_buf_add(
                out, (silt_slice){(const char *)rule.parts, rule.count * sizeof(rule.parts[0])});
}
