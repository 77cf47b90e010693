/* SPDX-License-Identifier: Apache-2.0 */
/* dns: answers sandboxes' questions by asking the resolvers. The sockets it listens on belong to
 * the gate; those it asks with to the machine. Each question goes out from a port of its own with
 * an identity of its own. */
#pragma once

#include "base/list.h"
#include "event/loop.h"
#include "proxy/resolvers.h"

enum { SILT_DNS_LISTENERS = 2 }; /* IPv4 and IPv6 */

struct silt_dns_listener {
    struct silt_dns *dns;
    struct silt_watch udp, tcp;
};

struct silt_dns {
    struct silt_loop *loop;           /* borrowed */
    struct silt_resolvers *resolvers; /* borrowed */
    struct silt_dns_listener listeners[SILT_DNS_LISTENERS];
    struct silt_link flights; /* questions by UDP that wait for an answer, oldest first */
    struct silt_link calls;   /* connections */
    size_t nflights, ncalls;
};

/* loop and resolvers are set. `udp`, `tcp`: the sockets of each family, -1: none. */
void silt_dns_open(struct silt_dns *d, const int udp[SILT_DNS_LISTENERS],
                   const int tcp[SILT_DNS_LISTENERS]);

/* flight.c, call.c */
void silt_dns_on_datagram(struct silt_watch *w, uint32_t events);
void silt_dns_on_connection(struct silt_watch *w, uint32_t events);
bool silt_dns_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
