/* SPDX-License-Identifier: Apache-2.0 */
/* network: a sandbox's mode (enum silt_net_mode) and, in mode allow, its rules. The row says what
 * is wanted, also over stops and restarts; a running sandbox gets it one change after the other.
 *
 * In no moment more is open than before the change or after it. Mode allow: silt-proxy has the
 * rules before the link is in that mode. Any other: the link is in that mode before silt-proxy
 * forgets the rules. A sandbox of mode allow is started in mode none, and commands wait until it
 * has its own. */
#pragma once

#include "base/list.h"
#include "sandbox/egress.h"
#include "wire/priv.h"

#include <stdbool.h>

struct silt_registry;
struct silt_sandbox;
struct silt_sandbox_options;

/*  RESTING --a change, a start--> LEARNING --number of the link--> SETTING --APPLIED--> TURNING -->
 * RESTING
 *      \--------to another mode than allow----------------------------------------------/        */
enum silt_network_step {
    SILT_NETWORK_RESTING,
    SILT_NETWORK_LEARNING, /* silt-priv is asked for the link's number */
    SILT_NETWORK_SETTING,  /* silt-proxy gets the rules */
    SILT_NETWORK_TURNING,  /* silt-priv changes the mode; captive: makes sockets inside */
};

struct silt_network { /* in each sandbox */
    enum silt_network_step step;
    uint64_t turn;                   /* of the step: an answer to an earlier one is of no use */
    struct silt_timer late;          /* SETTING; at rest: to try again what failed */
    struct silt_link changes;        /* those whose turn has not come */
    struct silt_network_change *now; /* the one under way; NULL: none, or its caller has left */
    bool changing;                   /* one is under way, and these were in the row before it: */
    enum silt_net_mode before;
    char *before_allow;          /* owned */
    bool failing;                /* so did what was tried before: it has been told */
    bool stale;                  /* it may be in another mode than the row says */
    bool coming;                 /* commands wait for it */
    bool demanded;               /* by whoever created it: without a network it is not made */
    bool unsaved;                /* the rules are not in the store yet */
    enum silt_net_mode in_force; /* of the link; SILT_NET_DEFAULT: not known */
    bool deaf;                   /* captive: no silt-proxy has got sockets of this run's yet */
    bool linked;                 /* the link's number is known: end.link, 0: it has none */
    uint64_t generation;         /* of the rules that silt-proxy shall have; 0: none */
    struct silt_egress_end end;
    struct silt_refusals refusals;
};

/* Embedded in a request; silt_network_leave when that goes. */
struct silt_network_change {
    struct silt_link link;
    struct silt_network *network; /* of the sandbox */
    enum silt_net_mode mode;
    char *allow; /* taken; NULL but in mode allow, and captive */
    /* Once; NULL: it is in force (or will be, when the sandbox starts). An error: all is as before.
     */
    void (*on_done)(struct silt_network_change *c, const struct silt_error *e);
};

void silt_network_init(struct silt_sandbox *s);
void silt_network_fini(struct silt_sandbox *s);
/* The daemon ends: nobody is going to answer. */
void silt_network_forget_asks(struct silt_registry *r);
void silt_network_change(struct silt_sandbox *s, struct silt_network_change *c);
void silt_network_leave(struct silt_network_change *c);

/* network_choice.c: of one that is to be made. SILT_UNAVAILABLE: it wants what there is not. */
int silt_network_check(const struct silt_registry *r, const struct silt_sandbox_options *o,
                       struct silt_error *e);
void silt_network_choose(struct silt_sandbox *s, const struct silt_sandbox_options *o);

/* What the rest of the room tells. */
/* The mode that it is to be made or claimed with. */
enum silt_net_mode silt_network_birth_mode(const struct silt_sandbox *s);
void silt_network_on_created(struct silt_sandbox *s, uint32_t link);
void silt_network_on_claimed(struct silt_sandbox *s);
void silt_network_on_running(
    struct silt_sandbox *s); /* silt_sandbox_on_network comes if it is `coming` */
void silt_network_on_ended(struct silt_sandbox *s); /* stopped or destroyed */
/* silt-proxy has the rules of this generation, or has not. */
void silt_network_on_applied(struct silt_sandbox *s, uint64_t generation,
                             const struct silt_error *e);

/* captive: silt-proxy has no sockets of it. */
void silt_network_on_listenless(struct silt_sandbox *s, uint64_t generation);

/* The callback comes exactly once. Without counters: SILT_UNAVAILABLE, this machine has no network
 * for sandboxes; or another failure; or no error: it does not run. */
struct silt_network_counts {
    const struct silt_priv_netstat *link;
    const struct silt_egress_counts *proxy; /* NULL: silt-proxy does not answer */
};
typedef void silt_network_counted(void *context, const struct silt_network_counts *counts,
                                  const struct silt_error *e);
void silt_network_count(struct silt_sandbox *s, silt_network_counted *on_counted, void *context);
