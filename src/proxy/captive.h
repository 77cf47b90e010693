/* SPDX-License-Identifier: Apache-2.0 */
/* captive: sandboxes in mode captive. silt-proxy has sockets inside each; a connection is offered to the program that its settings
 * name, on 127.0.0.1, and goes on as that says (offer.c); questions of names go to names.c. */
#pragma once

#include "base/fd.h"
#include "proxy/authority.h"
#include "proxy/connect.h"
#include "proxy/dns.h"
#include "proxy/passage.h"

struct silt_captives {
    struct silt_loop *loop;               /* borrowed */
    struct silt_links *links;             /* borrowed */
    struct silt_dns *dns;                 /* borrowed */
    struct silt_authorities *authorities; /* borrowed */
    struct silt_passages *passages;       /* borrowed: descriptors are shared with them */
    int diag;                             /* whose a connection is; not owned */
    uint32_t each;                        /* connections of one sandbox */
    size_t count;                         /* of captives */
    size_t offers;                        /* of all */
    size_t shaking;                       /* of them in a handshake, of some 70 KiB each */
};

enum { SILT_CAPTIVE_FAMILIES = 2 };

struct silt_captive { /* of a link */
    struct silt_captives *all;     /* borrowed */
    struct silt_egress_link *link; /* borrowed */
    struct silt_captive_listener {
        struct silt_captive *captive;
        struct silt_watch watch;
    } listeners[SILT_CAPTIVE_FAMILIES];
    struct silt_dns_listener dns[SILT_CAPTIVE_FAMILIES];
    struct silt_timer pause; /* no descriptor was left */
    struct silt_link offers;
    struct silt_grave grave;
    /* Settings */
    uint16_t port;
    uint32_t uid; /* beside root: whose program is believed there */
    bool internet;
    uint64_t authority;
    char *globs; /* one a line; owned */
    size_t globs_len;
    int64_t steps, steps_ms; /* what questions may still cost; since when (names.c) */
};

/* SILT_NOT_FOUND: there are no sockets, neither given nor from before. `fds` are taken when it succeeds. */
int silt_captive_set(struct silt_captives *all, const struct silt_egress_request *q, struct silt_parcel *p,
                     struct silt_error *e);
/* Its connections are cut, its sockets closed. Fine when it is none. */
void silt_captive_drop(struct silt_egress_link *link);

/* offer.c */
struct silt_offer_caller {
    int fd; /* its connection */
    struct sockaddr_storage from, to;
    silt_prefix address; /* of `to` */
    uint16_t port;
};
void silt_offer_begin(struct silt_captive *captive, const struct silt_offer_caller *c); /* takes c->fd */
void silt_offers_cut(struct silt_captive *captive);
