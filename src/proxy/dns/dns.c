/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns/dns.h"
#include "base/own.h"

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

void silt_dns_listen_captive(struct silt_dns *d, struct silt_dns_listener *l, int udp,
                             uint32_t number)
{
    *l = (struct silt_dns_listener){.dns = d,
                                    .captive = number,
                                    .udp = {.fd = udp, .on_ready = silt_dns_on_datagram},
                                    .tcp = {.fd = -1}};
    silt_loop_watch(d->loop, &l->udp, EPOLLIN);
}

void silt_dns_drop(struct silt_dns_listener *l)
{
    if (l->udp.fd < 0)
        return;
    silt_dns_end_flights(l);
    silt_loop_forget(l->dns->loop, &l->udp);
    silt_close_fd(&l->udp.fd);
}

struct silt_name_policy_asker silt_dns_asker(const struct silt_dns_listener *l,
                                             const struct sockaddr_storage *from)
{
    return (struct silt_name_policy_asker){
        .links = l->dns->links,
        .link = l->captive != 0 ? l->captive : silt_link_table_number(l->dns->links, from),
        .allow = l->allow,
        .captive = l->captive != 0};
}
