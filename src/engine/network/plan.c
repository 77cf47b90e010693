/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/plan.h"
#include "base/slice.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_clear_behind(const silt_ip *ip, unsigned bits)
{
    unsigned size = (unsigned)silt_ip_bits(ip->family);
    for (unsigned i = bits; i < size; i++)
        if ((ip->bytes[i / 8] & (0x80 >> i % 8)) != 0)
            return false;
    return true;
}

int silt_plan_network(const char *text, int family, silt_ip *ret, unsigned *ret_bits,
                      struct silt_error *e)
{
    char address[INET6_ADDRSTRLEN];
    silt_slice rest = silt_slice_of(text), head;
    uint64_t bits, most = (uint64_t)silt_ip_bits(family);
    *ret = (silt_ip){.family = family};
    if (!silt_slice_split(&rest, '/', &head)
        || silt_slice_to_cstr(head, address, sizeof(address), e) < 0
        || inet_pton(family, address, ret->bytes) != 1
        || silt_slice_to_u64(rest, 1, most, &bits, e) < 0)
        return silt_fail(e, SILT_INVALID, "%s is no network like %s", text,
                         family == AF_INET ? "10.210.0.0/16" : "fd73:696c:7400::/64");
    if (!is_clear_behind(ret, (unsigned)bits))
        return silt_fail(e, SILT_INVALID, "%s has bits behind its prefix", text);
    *ret_bits = (unsigned)bits;
    return 0;
}

int silt_plan_make(const char *pool4, const char *pool6, uint32_t block, struct silt_plan *ret,
                   struct silt_error *e)
{
    unsigned bits4, bits6;
    struct silt_plan p = {.block = (uint8_t)block, .ipv6 = access("/proc/sys/net/ipv6", F_OK) == 0};
    if (silt_plan_network(pool4, AF_INET, &p.pool4, &bits4, e) < 0
        || silt_plan_network(pool6, AF_INET6, &p.pool6, &bits6, e) < 0)
        return -1;
    if (bits4 < 8 || bits4 > 24)
        return silt_fail(e, SILT_INVALID, "%s: a prefix of /8 to /24", pool4);
    if (bits6 > 96)
        return silt_fail(e, SILT_INVALID, "%s: a prefix of at most /96", pool6);
    p.links = (1U << (32 - bits4)) - 1; /* without the last, which looks like a broadcast address */
    *ret = p;
    return 0;
}

silt_ip silt_plan_ip(const struct silt_plan *p, int family, uint32_t number)
{
    silt_ip ip = family == AF_INET ? p->pool4 : p->pool6;
    size_t end = (size_t)silt_ip_bits(family) / 8;
    for (size_t i = 1; i <= 4; i++) {
        ip.bytes[end - i] |= (uint8_t)(number & 0xff);
        number >>= 8;
    }
    return ip;
}

/* 198.18.0.0/15 is reserved for benchmarks and not used in real networks; fd73:696c:7401::/48 is a
 * unique local network of our own. */
silt_ip silt_plan_uplink(const struct silt_plan *p, int family, bool outside)
{
    silt_ip four = {AF_INET, {198, 18, p->block, outside ? 0 : 1}};
    silt_ip six = {AF_INET6, {0xfd, 0x73, 0x69, 0x6c, 0x74, 0x01, 0, p->block}};
    six.bytes[15] = outside ? 1 : 2; /* zero is the subnet-router anycast address */
    return family == AF_INET ? four : six;
}

uint32_t silt_plan_number(const struct silt_plan *p, const silt_ip *ip)
{
    size_t end = (size_t)silt_ip_bits(ip->family) / 8;
    const silt_ip *pool = ip->family == AF_INET ? &p->pool4 : &p->pool6;
    uint32_t number = 0;
    for (size_t i = end - 4; i < end; i++)
        number = number << 8 | (uint8_t)(ip->bytes[i] ^ pool->bytes[i]);
    if (number < SILT_PLAN_LINK_FIRST || number >= p->links)
        return 0;
    silt_ip again = silt_plan_ip(p, ip->family, number);
    return memcmp(again.bytes, ip->bytes, end) == 0 ? number : 0;
}

void silt_plan_link_name(uint32_t number, char out[IF_NAMESIZE])
{
    (void)snprintf(out, IF_NAMESIZE, SILT_PLAN_LINK_PREFIX "%u", number);
}
