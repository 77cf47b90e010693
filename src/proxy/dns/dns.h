/* SPDX-License-Identifier: Apache-2.0 */
/* dns: the DNS forwarder of silt-proxy. It listens on sockets of the gateway (or inside an
 * intercepted sandbox) and queries the machine's resolvers, each query from its own port and with
 * its own id. */
#pragma once

#include "base/list.h"
#include "event/loop.h"
#include "proxy/dns/name_policy.h"
#include "proxy/dns/resolvers.h"

enum { SILT_DNS_LISTENERS = 4 }; /* of two families, of links in mode allow and of others */

struct silt_dns_listener {
    struct silt_dns *dns;
    bool allow;       /* the gateway diverts links in mode allow here, and no others */
    uint32_t captive; /* link of the intercepted sandbox it is in; 0: in the gateway */
    struct silt_watch udp, tcp;
};

struct silt_dns {
    struct silt_loop *loop;           /* borrowed */
    struct silt_resolvers *resolvers; /* borrowed */
    struct silt_link_table *links;    /* borrowed */
    struct silt_dns_listener listeners[SILT_DNS_LISTENERS];
    size_t nlisteners;
    struct silt_link flights; /* questions by UDP that wait for an answer, oldest first */
    struct silt_link calls;   /* connections */
    size_t nflights, ncalls;
};

/* What is borrowed is set. */
void silt_dns_init(struct silt_dns *d);
void silt_dns_listen(struct silt_dns *d, int udp, int tcp, bool allow);

/* In a captive sandbox: by UDP only. Takes udp; the listener is the caller's, until silt_dns_drop.
 */
void silt_dns_listen_captive(struct silt_dns *d, struct silt_dns_listener *l, int udp,
                             uint32_t number);
void silt_dns_drop(struct silt_dns_listener *l);

/* udp_query.c, tcp_query.c */
void silt_dns_end_flights(struct silt_dns_listener *l);
void silt_dns_on_datagram(struct silt_watch *w, uint32_t events);
void silt_dns_on_connection(struct silt_watch *w, uint32_t events);
struct silt_name_policy_asker silt_dns_asker(const struct silt_dns_listener *l,
                                             const struct sockaddr_storage *from);
