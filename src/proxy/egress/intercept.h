/* SPDX-License-Identifier: Apache-2.0 */
/* intercept: sandboxes whose egress goes to a sidecar. silt-proxy owns listening sockets inside
 * each of them; it offers every connection to the program on 127.0.0.1 that the settings name,
 * which decides how it continues (intercept_conn.c). DNS queries go through name_policy.c. */
#pragma once

#include "base/fd.h"
#include "proxy/egress/intercept_ca.h"
#include "proxy/egress/http_connect.h"
#include "proxy/dns/dns.h"
#include "proxy/egress/allow_conn.h"

struct silt_intercepts {
    struct silt_loop *loop;                 /* borrowed */
    struct silt_link_table *links;          /* borrowed */
    struct silt_dns *dns;                   /* borrowed */
    struct silt_intercept_cas *authorities; /* borrowed */
    struct silt_allow_conns *passages;      /* borrowed: descriptors are shared with them */
    int diag;       /* sock_diag socket, to find the owner of a connection; not owned */
    uint32_t each;  /* connections of one sandbox */
    size_t count;   /* of intercepts */
    size_t offers;  /* connections of all */
    size_t shaking; /* of them in a TLS handshake, about 70 KiB each */
};

enum { SILT_INTERCEPT_FAMILIES = 2 };

struct silt_intercept {            /* of a link */
    struct silt_intercepts *all;   /* borrowed */
    struct silt_egress_link *link; /* borrowed */
    struct silt_intercept_listener {
        struct silt_intercept *captive;
        struct silt_watch watch;
    } listeners[SILT_INTERCEPT_FAMILIES];
    struct silt_dns_listener dns[SILT_INTERCEPT_FAMILIES];
    struct silt_timer pause; /* out of descriptors: accepting pauses */
    struct silt_link offers;
    struct silt_grave grave;
    /* Settings */
    uint16_t port;
    uint32_t uid; /* the sidecar must run as this user or root */
    uint64_t authority;
    struct silt_intercept_names names;
};

/* SILT_NOT_FOUND: there are no sockets, neither given nor from before. `fds` are taken when it
 * succeeds. */
int silt_intercept_set(struct silt_intercepts *all, const struct silt_egress_request *q,
                       struct silt_parcel *p, struct silt_error *e);
/* Cuts its connections and closes its sockets. Fine when there is none. */
void silt_intercept_drop(struct silt_egress_link *link);

/* intercept_conn.c */
struct silt_intercept_conn_caller {
    int fd; /* the connection */
    struct sockaddr_storage from, to;
    silt_ip_prefix address; /* of `to` */
    uint16_t port;
};
void silt_intercept_conn_begin(struct silt_intercept *captive,
                               const struct silt_intercept_conn_caller *c); /* takes c->fd */
void silt_intercept_conns_cut(struct silt_intercept *captive);
