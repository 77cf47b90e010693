/* SPDX-License-Identifier: Apache-2.0 */
/* allow_conn: one connection of a sandbox in mode allow, from the gateway's divert to its
 * destination. silt-proxy dials at once if the policy can allow the destination at all, but
 * forwards the sandbox's bytes only when it knows the host name and the policy allows it. */
#pragma once

#include "proxy/egress/dial_client.h"
#include "proxy/policy/link_table.h"

enum { SILT_ALLOW_CONNS_LISTENERS = 2 };

struct silt_allow_conns {
    struct silt_loop *loop;          /* borrowed */
    struct silt_link_table *links;   /* borrowed */
    struct silt_dial_client *dialer; /* borrowed */
    struct silt_allow_conns_listener {
        struct silt_allow_conns *all;
        struct silt_watch watch;
    } listeners[SILT_ALLOW_CONNS_LISTENERS];
    size_t nlisteners;
    struct silt_timer pause; /* out of descriptors: accepting pauses */
    size_t count, most;
};

/* A new connection that the policy may allow. */
struct silt_allow_conn_caller {
    int fd;                        /* the connection */
    struct silt_egress_link *link; /* borrowed: outlives the connection */
    struct sockaddr_storage to;
    silt_ip_prefix address; /* of `to` */
    uint16_t port;
    bool by_network; /* a rule allows the address itself: nothing is inspected */
};
void silt_allow_conn_begin(struct silt_allow_conns *all,
                           const struct silt_allow_conn_caller *c); /* takes c->fd */

/* accept.c. `files`: the descriptor limit. */
void silt_allow_conns_init(struct silt_allow_conns *p, size_t files);
void silt_allow_conns_listen(struct silt_allow_conns *p, int fd);
/* After a policy change: resets connections that it forbids. */
void silt_allow_conns_reconsider(struct silt_egress_link *link);
void silt_allow_conns_cut(struct silt_egress_link *link); /* all */
void silt_allow_conns_free(
    struct silt_egress_link *link); /* all stay open, unchecked from now on */
