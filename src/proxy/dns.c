/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns.h"

#include <assert.h>
#include <netinet/in.h>

void silt_dns_init(struct silt_dns *d)
{
    silt_list_init(&d->flights);
    silt_list_init(&d->calls);
}

void silt_dns_listen(struct silt_dns *d, int udp, int tcp, bool allow)
{
    assert(d->nlisteners < SILT_DNS_LISTENERS);
    struct silt_dns_listener *l = &d->listeners[d->nlisteners++];
    *l = (struct silt_dns_listener){
        .dns = d,
        .allow = allow,
        .udp = {.fd = udp, .on_ready = silt_dns_on_datagram},
        .tcp = {.fd = tcp, .on_ready = silt_dns_on_connection},
    };
    silt_loop_watch(d->loop, &l->udp, EPOLLIN);
    silt_loop_watch(d->loop, &l->tcp, EPOLLIN);
}

struct silt_names_asker silt_dns_asker(const struct silt_dns_listener *l,
                                       const struct sockaddr_storage *from)
{
    return (struct silt_names_asker){
        .links = l->dns->links, .link = silt_links_number(l->dns->links, from), .allow = l->allow};
}

bool silt_dns_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}
