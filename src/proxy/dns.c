/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns.h"

#include <assert.h>

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
