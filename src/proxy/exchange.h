/* SPDX-License-Identifier: Apache-2.0 */
/* exchange: one request and its answer. Private to exchange.c (who is asked) and pass.c (what is said). */
#pragma once

#include "proxy/visitor.h"

/*  FINDING --route--> DIALING --socket--> PASSING --both said everything--> over
 *      \---route, and a socket is idle-----^  \---101--> TUNNEL --both ended--> over   */
enum silt_exchange_stage {
    SILT_EXCHANGE_FINDING,
    SILT_EXCHANGE_DIALING,
    SILT_EXCHANGE_PASSING,
    SILT_EXCHANGE_TUNNEL,
};

struct silt_exchange {
    struct silt_visitor *visitor; /* borrowed */
    struct silt_grave grave;
    enum silt_exchange_stage stage;
    struct sockaddr_in6 from; /* the visitor, whoever stood between us */
    bool tls;                 /* it came by https */
    struct silt_route *route; /* while it is used; borrowed */
    struct silt_route_wait wait;
    struct silt_route_user user;
    struct silt_guest_wait tokens;
    struct silt_talk_ask dial;
    struct silt_upstream *up;
    uint32_t flags; /* of the route */
    uint16_t port;
    uint16_t head_len; /* of the request, in v->in until it is written anew */
    uint8_t attempts;  /* sockets so far */
    /* What the request is like */
    bool head_only, repeatable, upgrade, expects, old, keeps, html;
    /* What happened */
    bool at_once;      /* the route is known: nobody waits for it */
    bool reused;       /* the socket was idle before */
    bool answered;     /* something came */
    bool body_sent;    /* some of the request's body */
    bool request_done; /* all of it is in to_up, or sent */
    bool told;         /* the head of the answer */
    bool answer_done;
    bool up_reusable, up_broken, up_ended, up_shut, down_shut;
    bool throttled[SILT_GUEST_WAYS];
    struct silt_body request, answer;
    enum silt_body_kind as;  /* how the visitor gets the answer */
    struct silt_buf head;    /* of the request, as the service gets it */
    struct silt_buf to_up;   /* waits for the service */
    struct silt_buf from_up; /* a head that is not complete */
    struct silt_buf cookie;  /* to be set with the answer */
    int64_t began_ms, active_ms;
};

/* exchange.c */
void silt_exchange_page(struct silt_exchange *x, enum silt_page_kind kind, const char *text);
int64_t silt_exchange_check_ms(const struct silt_exchange *x); /* how often one that passes is looked after */
/* The service went away before it answered: another socket, if that is right, else a page. */
void silt_exchange_lost(struct silt_exchange *x, bool refused);
void silt_exchange_over(struct silt_exchange *x); /* all is said */
/* The answer cannot be finished: a page while nothing is told, else the connection breaks. */
void silt_exchange_fail(struct silt_exchange *x, enum silt_page_kind kind);

/* pass.c */
void silt_pass_attach(struct silt_exchange *x, struct silt_upstream *u, bool reused);
void silt_pass_on_visitor(struct silt_exchange *x);
void silt_pass_on_written(struct silt_exchange *x);
void silt_pass_settle(struct silt_exchange *x);
