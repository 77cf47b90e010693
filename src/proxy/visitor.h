/* SPDX-License-Identifier: Apache-2.0 */
/* visitor: one who looks at previews: their connection, and the exchange (a request and its answer) that it is busy with. Private to
 * the role `preview`: visitor.c reads, writes and times, exchange.c finds the service and asks it, pass.c carries what both say.
 *
 * One exchange at a time; what comes meanwhile waits in the kernel. Nothing is read from one side while the other has not taken what
 * came before, so memory is bounded. A connection that is idle owns nothing but its struct. */
#pragma once

#include "http/tls.h"
#include "proxy/front.h"
#include "proxy/guess.h"
#include "proxy/heads.h"
#include "proxy/page.h"
#include "proxy/upstream.h"

struct silt_exchange;
struct silt_veil;

struct silt_visitors_settings {
    struct silt_host_rule rule;
    uint32_t wait_ms, head_timeout_ms, idle_timeout_ms, silence_timeout_ms, total_timeout_s;
    size_t connections;     /* exchanges of one sandbox */
    size_t connections_all; /* visitors */
};

struct silt_visitors {
    struct silt_loop *loop;     /* borrowed */
    struct silt_routes *routes; /* borrowed */
    struct silt_talk *talk;     /* borrowed */
    struct silt_visitors_settings settings;
    struct silt_pool pool;
    struct silt_guesses guesses;
    struct silt_link list;
    size_t count;
    struct silt_watch listener;
    struct silt_timer pause; /* of accepting */
    bool tls;                           /* visitors see https, as far as nobody who knows says otherwise */
    bool veiled;                        /* there is to be TLS: by us, not by a front */
    struct silt_tls_identity *identity; /* NULL: none could be used so far */
    struct silt_link shaking;           /* visitors in a handshake, the oldest first: each holds several times the memory of an open one */
    size_t shaking_count;
    struct silt_prefix_list fronts;
};

/*  HELLO --TLS is up, or it is not TLS--> IDLE
 *  IDLE --bytes--> HEAD --complete--> BUSY --answered--> IDLE
 *  any --last answer given--> PARTING --written--> LINGER --over--> CLOSED      */
enum silt_visitor_state {
    SILT_VISITOR_HELLO, /* where there is a certificate: what does it speak? */
    SILT_VISITOR_IDLE,
    SILT_VISITOR_HEAD,
    SILT_VISITOR_BUSY,
    SILT_VISITOR_PARTING, /* the last answer is on its way out */
    SILT_VISITOR_LINGER,  /* it is out; reads on for a while, because closing on unread bytes resets */
    SILT_VISITOR_CLOSED,  /* buried */
};

struct silt_visitor {
    struct silt_visitors *all; /* borrowed */
    struct silt_watch watch;
    struct silt_timer timer; /* rings at the deadline, or before */
    struct silt_grave grave;
    struct silt_link link; /* in all->list */
    enum silt_visitor_state state;
    bool last;   /* no request after this one */
    bool noisy;  /* bytes, or their end, came while none were wanted: epoll is not asked for more */
    bool halved; /* the visitor says no more */
    bool bare;   /* speaks plain HTTP where TLS is spoken */
    bool stale;  /* what is in v->in is no whole head, and nothing came that could make it one */
    int64_t deadline_ms;
    struct sockaddr_in6 from; /* or one of IPv4 */
    struct silt_buf in;       /* read, not yet used */
    struct silt_buf out;
    struct silt_veil *veil;         /* NULL: plain */
    struct silt_link hello;         /* in all->shaking */
    struct silt_exchange *exchange; /* while BUSY */
};

enum {
    SILT_VISITOR_PIECE = 64 << 10, /* read at once, at most */
    SILT_VISITOR_KEEP = 2048,      /* memory that an empty buffer keeps while busy */
};

void silt_visitors_init(struct silt_visitors *all, size_t files);
void silt_visitors_listen(struct silt_visitors *all, int fd);
/* siltd let one in: `fd` (taken) has said `bytes`, a request and perhaps more. Serves that one by the route. */
void silt_visitors_hand(struct silt_visitors *all, int fd, silt_slice bytes, struct silt_route *route, uint32_t flags);

/* Where bytes are read to: nobody keeps anything there. */
extern char silt_visitor_room[SILT_VISITOR_PIECE];
/* What is read may have to be kept until somebody takes it: the more visitors, the less at once. */
size_t silt_visitor_piece(const struct silt_visitors *all);

/* As recv: 0 at the end, -1 with errno. */
ssize_t silt_visitor_recv(struct silt_visitor *v, size_t room);
/* What is not taken now waits in v->out. -1: broken. */
int silt_visitor_flush(struct silt_visitor *v);
int silt_visitor_send(struct silt_visitor *v, silt_slice bytes);
void silt_visitor_shut(struct silt_visitor *v); /* we say no more */
void silt_visitor_deadline(struct silt_visitor *v, int64_t ms); /* from now on */
/* Brings the watch in line with the state; `reads`: bytes are wanted. */
void silt_visitor_watch(struct silt_visitor *v, bool reads);
void silt_visitor_address(const struct sockaddr_in6 *from, char out[INET6_ADDRSTRLEN]);
/* The exchange is over, its answer lies in v->out or is sent. */
void silt_visitor_answered(struct silt_visitor *v);
void silt_visitor_cut(struct silt_visitor *v); /* resets */
/* After everything that happened, once: what waits goes on. */
void silt_visitor_settle(struct silt_visitor *v);

/* exchange.c; all of them end by silt_visitor_answered or silt_visitor_cut, now or later. */
/* The head of a request is v->in's beginning. false: it is not complete. `route` is one that siltd let it in by, or NULL. */
bool silt_exchange_begin(struct silt_visitor *v, struct silt_route *route, uint32_t flags);
void silt_exchange_on_bytes(struct silt_visitor *v);   /* the visitor has some, or is at its end */
void silt_exchange_on_written(struct silt_visitor *v); /* v->out is empty again */
void silt_exchange_on_late(struct silt_visitor *v);
void silt_exchange_settle(struct silt_visitor *v);
void silt_exchange_free(struct silt_exchange *x); /* the visitor is gone */
