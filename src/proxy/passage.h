/* SPDX-License-Identifier: Apache-2.0 */
/* passage: one connection of a sandbox in mode allow, from where the gate diverted it to where it
 * was meant to go. It is dialled at once when its destination can be allowed at all; what the
 * sandbox says passes only when it is clear, and allowed, whom it talks to. */
#pragma once

#include "proxy/dialer.h"
#include "proxy/links.h"

enum { SILT_PASSAGES_LISTENERS = 2 };

struct silt_passages {
    struct silt_loop *loop;     /* borrowed */
    struct silt_links *links;   /* borrowed */
    struct silt_dialer *dialer; /* borrowed */
    struct silt_passages_listener {
        struct silt_passages *all;
        struct silt_watch watch;
    } listeners[SILT_PASSAGES_LISTENERS];
    size_t nlisteners;
    struct silt_timer pause; /* no descriptor was left */
    size_t count, most;
};

/* Who wants to pass, and may, as far as can be told before it has spoken. */
struct silt_passage_caller {
    int fd;                        /* its connection */
    struct silt_egress_link *link; /* borrowed: outlives the passage */
    struct sockaddr_storage to;
    silt_prefix address; /* of `to` */
    uint16_t port;
    bool by_network; /* a rule has the address: whatever it says may pass */
};
void silt_passage_begin(struct silt_passages *all,
                        const struct silt_passage_caller *c); /* takes c->fd */

/* entry.c: where they come in. `files`: descriptors that we may have. */
void silt_passages_init(struct silt_passages *p, size_t files);
void silt_passages_listen(struct silt_passages *p, int fd);
/* After a change of policy: those it forbids break off. */
void silt_passages_reconsider(struct silt_egress_link *link);
void silt_passages_cut(struct silt_egress_link *link); /* all */
void silt_passages_free(
    struct silt_egress_link *link); /* all stay, and are no longer listened to */
