/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/trusted_proxy.h"

static silt_ip_prefix prefix_of(const struct sockaddr_in6 *from)
{
    silt_ip_prefix p = {.family = 6, .bits = 128};
    if (from->sin6_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&from->sin6_addr)) {
        memcpy(p.bytes, &from->sin6_addr, sizeof(from->sin6_addr));
        return p;
    }
    p = (silt_ip_prefix){.family = 4, .bits = 32};
    if (from->sin6_family == AF_INET)
        memcpy(p.bytes, &((const struct sockaddr_in *)(const void *)from)->sin_addr,
               sizeof(struct in_addr));
    else
        memcpy(p.bytes, &from->sin6_addr.s6_addr[12], sizeof(struct in_addr));
    return p;
}

static void address_of(const silt_ip_prefix *p, struct sockaddr_in6 *ret)
{
    *ret = (struct sockaddr_in6){.sin6_family = AF_INET6};
    if (p->family == 6) {
        memcpy(&ret->sin6_addr, p->bytes, sizeof(ret->sin6_addr));
        return;
    }
    ret->sin6_addr.s6_addr[10] = ret->sin6_addr.s6_addr[11] = 0xff; /* ::ffff:1.2.3.4 */
    memcpy(&ret->sin6_addr.s6_addr[12], p->bytes, sizeof(struct in_addr));
}

static bool covers(const struct silt_ip_prefix_list *fronts, const silt_ip_prefix *p)
{
    for (size_t i = 0; i < fronts->count; i++)
        if (silt_ip_prefix_covers(&fronts->items[i], p))
            return true;
    return false;
}

bool silt_trusted_proxy_is(const struct silt_ip_prefix_list *fronts,
                           const struct sockaddr_in6 *from)
{
    silt_ip_prefix p = prefix_of(from);
    return fronts->count > 0 && covers(fronts, &p);
}

/* Removes the last element of a comma-separated list; false: the list is empty. */
static bool take_last(silt_slice *list, silt_slice *ret)
{
    if (list->len == 0)
        return false;
    size_t at = list->len;
    while (at > 0 && list->data[at - 1] != ',')
        at--;
    *ret = silt_slice_trim((silt_slice){list->data + at, list->len - at});
    list->len = at > 0 ? at - 1 : 0;
    return true;
}

/* One address; false: whoever wrote this is not understood, and so nobody is who stands before it.
 */
static bool step(silt_slice text, silt_ip_prefix *ret)
{
    struct silt_error e;
    return !silt_slice_has_byte(text, '/') && silt_ip_prefix_parse(text, ret, &e) == 0;
}

void silt_trusted_proxy_visitor(const struct silt_ip_prefix_list *fronts,
                                const struct silt_http_head *h, struct sockaddr_in6 *visitor)
{
    silt_slice one;
    silt_ip_prefix p;
    int steps = 0;
    for (size_t i = h->count; i > 0; i--) {
        silt_slice list = h->fields[i - 1].value;
        if (!silt_slice_ieq(h->fields[i - 1].name, SILT_LIT("x-forwarded-for")))
            continue;
        while (take_last(&list, &one)) {
            if (steps++ == SILT_TRUSTED_PROXY_STEPS_MAX || !step(one, &p))
                return;
            address_of(&p, visitor);
            if (!covers(fronts, &p))
                return;
        }
    }
}

bool silt_trusted_proxy_is_tls(const struct silt_http_head *h, bool otherwise)
{
    silt_slice last = {NULL, 0}, one;
    for (size_t i = 0; i < h->count; i++) {
        silt_slice list = h->fields[i].value;
        if (silt_slice_ieq(h->fields[i].name, SILT_LIT("x-forwarded-proto"))
            && take_last(&list, &one))
            last = one;
    }
    if (silt_slice_ieq(last, SILT_LIT("https")) || silt_slice_ieq(last, SILT_LIT("wss")))
        return true;
    if (silt_slice_ieq(last, SILT_LIT("http")) || silt_slice_ieq(last, SILT_LIT("ws")))
        return false;
    return otherwise;
}
