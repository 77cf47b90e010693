/* SPDX-License-Identifier: Apache-2.0 */
/* dns: answers sandboxes' questions by asking the resolvers. The sockets it listens on belong to
 * the gate; those it asks with to the machine. Each question goes out from a port of its own with
 * an identity of its own. */
#pragma once

#include "base/list.h"
#include "event/loop.h"
#include "proxy/names.h"
#include "proxy/resolvers.h"

enum { SILT_DNS_LISTENERS = 4 }; /* of two families, of links in mode allow and of others */

struct silt_dns_listener {
    struct silt_dns *dns;
    bool allow; /* the gate sends links in this mode here, and no others */
    uint32_t captive; /* number of the captive sandbox that it is inside of; 0: it is the gate's */
    struct silt_watch udp, tcp;
};

struct silt_dns {
    struct silt_loop *loop;           /* borrowed */
    struct silt_resolvers *resolvers; /* borrowed */
    struct silt_links *links;         /* borrowed */
    struct silt_dns_listener listeners[SILT_DNS_LISTENERS];
    size_t nlisteners;
    struct silt_link flights; /* questions by UDP that wait for an answer, oldest first */
    struct silt_link calls;   /* connections */
    size_t nflights, ncalls;
};

/* What is borrowed is set. */
void silt_dns_init(struct silt_dns *d);
void silt_dns_listen(struct silt_dns *d, int udp, int tcp, bool allow);

/* In a captive sandbox: by UDP only. Takes udp; the listener is the caller's, until silt_dns_drop. */
void silt_dns_listen_captive(struct silt_dns *d, struct silt_dns_listener *l, int udp, uint32_t number);
void silt_dns_drop(struct silt_dns_listener *l);

/* flight.c, call.c */
void silt_dns_end_flights(struct silt_dns_listener *l);
void silt_dns_on_datagram(struct silt_watch *w, uint32_t events);
void silt_dns_on_connection(struct silt_watch *w, uint32_t events);
struct silt_names_asker silt_dns_asker(const struct silt_dns_listener *l,
                                       const struct sockaddr_storage *from);
