/* SPDX-License-Identifier: Apache-2.0 */
/* network_state: the network state that each sandbox carries in siltd. Changed by network.h,
 * egress_channel.h and denials.h of sandbox/network. */
#pragma once

#include "base/list.h"
#include "event/loop.h"
#include "wire/priv.h"

#include <stdbool.h>

struct silt_denials {
    struct silt_link list; /* struct silt_denial, newest last */
    uint32_t count;
    uint64_t lost;     /* too many at once to record one by one */
    int64_t events_ms; /* since when `events` are counted */
    uint32_t events, omitted;
};

struct silt_egress_end { /* in each sandbox */
    uint32_t link;       /* 0: none known to silt-proxy */
    bool fresh;          /* silt-proxy's state for this number belongs to an earlier sandbox */
    bool heard;          /* silt-proxy has answered for us: later reports are ours */
    uint64_t barrier;    /* the request whose answer sets heard */
};

/* RESTING --change, start--> LEARNING --link number--> SETTING --APPLIED--> TURNING --> RESTING
 *     \--------to a mode other than allow-----------------------------------/ */
enum silt_network_step {
    SILT_NETWORK_RESTING,
    SILT_NETWORK_LEARNING, /* silt-priv looks up the link's number */
    SILT_NETWORK_SETTING,  /* silt-proxy gets the rules */
    SILT_NETWORK_TURNING,  /* silt-priv switches the mode; captive: creates sockets inside */
};

struct silt_network { /* in each sandbox */
    enum silt_network_step step;
    uint64_t turn;                   /* of the step; answers to earlier steps are ignored */
    struct silt_timer late;          /* deadline of SETTING; RESTING: retry after a failure */
    struct silt_link changes;        /* queued */
    struct silt_network_change *now; /* in progress; NULL: none, or its caller has left */
    bool changing;                   /* one is in progress; the row's values before it: */
    enum silt_net_mode before;
    char *before_allow;          /* owned */
    bool failing;                /* the last attempt failed too and was reported */
    bool stale;                  /* the mode in force may differ from the row */
    bool coming;                 /* commands wait for it */
    bool demanded;               /* requested explicitly: without it the sandbox is not created */
    bool unsaved;                /* the rules are not yet in the store */
    enum silt_net_mode in_force; /* of the link; SILT_NET_DEFAULT: unknown */
    bool deaf;                   /* captive: no silt-proxy has this run's sockets yet */
    bool linked;                 /* the link's number is known: end.link, 0: there is no link */
    uint64_t generation;         /* of the rules silt-proxy should have; 0: none */
    struct silt_egress_end end;
    struct silt_denials refusals;
};
