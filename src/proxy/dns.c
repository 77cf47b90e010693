/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns.h"

#include <netinet/in.h>

void silt_dns_open(struct silt_dns *d, const int udp[SILT_DNS_LISTENERS],
                   const int tcp[SILT_DNS_LISTENERS])
{
    silt_list_init(&d->flights);
    silt_list_init(&d->calls);
    for (int i = 0; i < SILT_DNS_LISTENERS; i++) {
        struct silt_dns_listener *l = &d->listeners[i];
        *l = (struct silt_dns_listener){
            .dns = d,
            .udp = {.fd = udp[i], .on_ready = silt_dns_on_datagram},
            .tcp = {.fd = tcp[i], .on_ready = silt_dns_on_connection},
        };
        if (udp[i] >= 0)
            silt_loop_watch(d->loop, &l->udp, EPOLLIN);
        if (tcp[i] >= 0)
            silt_loop_watch(d->loop, &l->tcp, EPOLLIN);
    }
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
