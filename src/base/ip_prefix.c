/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ip_prefix.h"
#include "base/own.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>

/* RFC 6890 and its successors. 168.63.129.16 is a public address at which a cloud serves metadata
 * to its machines. In IPv6 only 2000::/3 is allocated. */
const char *const silt_ip_prefix_closed[] = {
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/3",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "4000::/2",
    "8000::/1",
    NULL,
};

void silt_ip_prefix_clear(silt_ip_prefix *p)
{
    for (unsigned i = p->bits; i < silt_ip_prefix_size(p); i++)
        p->bytes[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
}

static int parse_address(silt_slice text, silt_ip_prefix *ret, struct silt_error *e)
{
    char address[INET6_ADDRSTRLEN];
    *ret = (silt_ip_prefix){.family = silt_slice_has_byte(text, ':') ? 6 : 4};
    ret->bits = (uint8_t)silt_ip_prefix_size(ret);
    if (silt_slice_to_cstr(text, address, sizeof(address), e) < 0
        || inet_pton(ret->family == 4 ? AF_INET : AF_INET6, address, ret->bytes) != 1)
        return silt_fail(e, SILT_INVALID, "is no IPv%d address", ret->family);
    return 0;
}

int silt_ip_prefix_parse(silt_slice text, silt_ip_prefix *ret, struct silt_error *e)
{
    char right[SILT_IP_PREFIX_TEXT];
    silt_slice rest = text, head = {"", 0};
    bool has_bits = silt_slice_has_byte(text, '/');
    uint64_t bits;
    silt_ip_prefix p, clear;
    (void)silt_slice_split(&rest, '/', &head);
    if (parse_address(head, &p, e) < 0)
        return -1;
    if (has_bits && silt_slice_to_u64(rest, 0, silt_ip_prefix_size(&p), &bits, e) < 0)
        return silt_fail(e, SILT_INVALID, "has no prefix length from 0 to %u behind the slash",
                         silt_ip_prefix_size(&p));
    p.bits = has_bits ? (uint8_t)bits : p.bits;
    clear = p;
    silt_ip_prefix_clear(&clear);
    if (memcmp(&p, &clear, sizeof(p)) != 0) {
        silt_ip_prefix_text(&clear, right);
        return silt_fail(e, SILT_INVALID, "has bits behind its prefix; the network is %s", right);
    }
    *ret = p;
    return 0;
}

int silt_ip_prefix_list_parse(silt_slice text, struct silt_ip_prefix_list *ret,
                              struct silt_error *e)
{
    silt_slice one;
    ret->count = 0;
    while (silt_slice_split(&text, ',', &one)) {
        one = silt_slice_trim(one);
        if (one.len == 0)
            continue;
        if (ret->count == SILT_IP_PREFIX_OPEN_MAX)
            return silt_fail(e, SILT_LIMIT, "more than %d networks", SILT_IP_PREFIX_OPEN_MAX);
        if (silt_ip_prefix_parse(one, &ret->items[ret->count], e) < 0)
            return silt_because(e, "%.*s", (int)(one.len < 64 ? one.len : 64), one.data);
        ret->count++;
    }
    return 0;
}

void silt_ip_prefix_text(const silt_ip_prefix *p, char out[SILT_IP_PREFIX_TEXT])
{
    char address[INET6_ADDRSTRLEN] = "";
    (void)inet_ntop(p->family == 4 ? AF_INET : AF_INET6, p->bytes, address, sizeof(address));
    if (p->bits == silt_ip_prefix_size(p))
        (void)snprintf(out, SILT_IP_PREFIX_TEXT, "%s", address);
    else
        (void)snprintf(out, SILT_IP_PREFIX_TEXT, "%s/%u", address, p->bits);
}

bool silt_ip_prefix_covers(const silt_ip_prefix *outer, const silt_ip_prefix *inner)
{
    silt_ip_prefix cut = *inner;
    if (outer->family != inner->family || outer->bits > inner->bits)
        return false;
    cut.bits = outer->bits;
    silt_ip_prefix_clear(&cut);
    return memcmp(cut.bytes, outer->bytes, sizeof(cut.bytes)) == 0;
}

static bool is_in(const silt_ip_prefix *p, const struct silt_ip_prefix_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (silt_ip_prefix_covers(&list->items[i], p))
            return true;
    return false;
}

/* Parses a table of constants, once. */
static const struct silt_ip_prefix_list *read_table(const char *const *texts,
                                                    struct silt_ip_prefix_list *all)
{
    struct silt_error e;
    for (; texts[all->count] != NULL; all->count++) {
        int got =
            silt_ip_prefix_parse(silt_slice_of(texts[all->count]), &all->items[all->count], &e);
        assert(got == 0);
    }
    return all;
}

static const struct silt_ip_prefix_list *closed(void)
{
    static struct silt_ip_prefix_list all;
    return read_table(silt_ip_prefix_closed, &all);
}

static bool touches_closed(const silt_ip_prefix *p)
{
    const struct silt_ip_prefix_list *all = closed();
    for (size_t i = 0; i < all->count; i++)
        if (silt_ip_prefix_covers(p, &all->items[i]))
            return true;
    return false;
}

/* Closed by one network, or both halves closed by several: how a closed range is split must not
 * matter. */
static bool is_all_closed(silt_ip_prefix p)
{
    if (is_in(&p, closed()))
        return true;
    if (p.bits == silt_ip_prefix_size(&p) || !touches_closed(&p))
        return false;
    silt_ip_prefix low = p, high = p;
    low.bits = high.bits = (uint8_t)(p.bits + 1);
    high.bytes[p.bits / 8] |= (uint8_t)(0x80 >> p.bits % 8);
    return is_all_closed(low) && is_all_closed(high);
}

bool silt_ip_prefix_is_closed(const silt_ip_prefix *p, const struct silt_ip_prefix_list *open)
{
    return is_all_closed(*p) && !is_in(p, open);
}

/* 100.64.0.0/10 holds a cloud's metadata address, 198.18.0.0/15 our own uplinks. */
static const char *const private_networks[] = {
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/127",
    "64:ff9b:1::/48",
    "fc00::/7",
    "fe80::/9",
    "ff00::/8",
    NULL,
};

static const struct carrier {
    const char *network;
    size_t at; /* where the IPv4 address begins */
} carriers[] = {{"::/96", 12},
                {"::ffff:0:0/96", 12},
                {"::ffff:0:0:0/96", 12},
                {"64:ff9b::/96", 12},
                {"2002::/16", 2}};

/* The embedded IPv4 address, or the address itself. */
static silt_ip_prefix unwrap(const silt_ip_prefix *address)
{
    silt_ip_prefix network, inner = {.family = 4, .bits = 32};
    struct silt_error e;
    for (size_t i = 0; i < SILT_COUNT(carriers); i++) {
        int got = silt_ip_prefix_parse(silt_slice_of(carriers[i].network), &network, &e);
        assert(got == 0);
        if (!silt_ip_prefix_covers(&network, address))
            continue;
        memcpy(inner.bytes, address->bytes + carriers[i].at, 4);
        return inner;
    }
    return *address;
}

bool silt_ip_prefix_is_private(const silt_ip_prefix *address,
                               const struct silt_ip_prefix_list *open)
{
    static struct silt_ip_prefix_list all;
    const struct silt_ip_prefix_list *list = read_table(private_networks, &all);
    silt_ip_prefix inner = unwrap(address);
    return (is_in(address, list) || is_in(&inner, list)) && !is_in(address, open)
           && !is_in(&inner, open);
}
