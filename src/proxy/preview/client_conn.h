/* SPDX-License-Identifier: Apache-2.0 */
/* client_conn: a client's connection to the role preview, and the request it is busy with.
 * client_conn.c reads, writes and keeps the deadlines; request.c finds the service and forward.c
 * copies bytes.
 *
 * One request at a time; pipelined ones wait in the kernel. Neither side is read while the other
 * has not accepted the bytes before, so memory is bounded. An idle connection owns nothing but its
 * struct. */
#pragma once

#include "http/tls.h"
#include "proxy/preview/trusted_proxy.h"
#include "proxy/preview/guess_limit.h"
#include "proxy/preview/header_rewrite.h"
#include "proxy/preview/error_page.h"
#include "proxy/preview/upstream.h"

struct silt_proxied_request;
struct silt_tls_conn;

struct silt_client_conns_settings {
    struct silt_host_rule rule;
    uint32_t wait_ms, head_timeout_ms, idle_timeout_ms, silence_timeout_ms, total_timeout_s;
    size_t connections;     /* concurrent requests of one sandbox */
    size_t connections_all; /* of all clients */
};

struct silt_client_conns {
    struct silt_loop *loop;            /* borrowed */
    struct silt_routes *routes;        /* borrowed */
    struct silt_preview_channel *talk; /* borrowed */
    struct silt_client_conns_settings settings;
    struct silt_pool pool;
    struct silt_guess_limit guesses;
    struct silt_link list;
    size_t count;
    struct silt_watch listener;
    struct silt_timer pause; /* pause of accepting */
    bool tls;                /* clients use https unless a trusted proxy says otherwise */
    bool veiled;             /* silt-proxy itself terminates TLS */
    struct silt_tls_identity *identity; /* NULL: no usable certificate yet */
    struct silt_link shaking; /* visitors in a handshake, the oldest first: each holds several times
                                 the memory of an open one */
    size_t shaking_count;
    struct silt_ip_prefix_list fronts;
};

/*  HELLO --TLS is up, or it is not TLS--> IDLE
 *  IDLE --bytes--> HEAD --complete--> BUSY --answered--> IDLE
 *  any --last answer given--> PARTING --written--> LINGER --over--> CLOSED      */
enum silt_client_conn_state {
    SILT_CLIENT_CONN_HELLO, /* on a TLS port: TLS or plain? */
    SILT_CLIENT_CONN_IDLE,
    SILT_CLIENT_CONN_HEAD,
    SILT_CLIENT_CONN_BUSY,
    SILT_CLIENT_CONN_PARTING, /* sending the last response */
    SILT_CLIENT_CONN_LINGER,  /* it is out; reads on for a while, because closing on unread bytes
                                 resets */
    SILT_CLIENT_CONN_CLOSED,  /* buried */
};

struct silt_client_conn {
    struct silt_client_conns *all; /* borrowed */
    struct silt_watch watch;
    struct silt_timer timer; /* fires at the deadline or earlier */
    struct silt_grave grave;
    struct silt_link link; /* in all->list */
    enum silt_client_conn_state state;
    bool last;   /* close after this response */
    bool noisy;  /* input arrived while not wanted: EPOLLIN is off */
    bool halved; /* the client has half-closed */
    bool bare;   /* speaks plain HTTP on a TLS port */
    bool stale;  /* v->in holds an incomplete head, and no new line since */
    int64_t deadline_ms;
    struct sockaddr_in6 from; /* or one of IPv4 */
    struct silt_buf in;       /* read, not yet used */
    struct silt_buf out;
    struct silt_tls_conn *veil;            /* NULL: plain */
    struct silt_link hello;                /* in all->shaking */
    struct silt_proxied_request *exchange; /* while BUSY */
};

enum {
    SILT_CLIENT_CONN_PIECE = 64 << 10, /* read at once, at most */
    SILT_CLIENT_CONN_KEEP = 2048,      /* memory that an empty buffer keeps while busy */
};

void silt_client_conns_init(struct silt_client_conns *all, size_t files);
void silt_client_conns_listen(struct silt_client_conns *all, int fd);
/* A connection that siltd handed over: takes `fd`, of which `bytes` were read already, a request
 * and perhaps more. Serves that request by the route. */
void silt_client_conns_hand(struct silt_client_conns *all, int fd, silt_slice bytes,
                            struct silt_route *route, uint32_t flags);

/* How much to read at once: less with more clients, because it may have to be buffered. */
size_t silt_client_conn_piece(const struct silt_client_conns *all);

/* As recv: 0 at the end, -1 with errno. */
ssize_t silt_client_conn_recv(struct silt_client_conn *v, char *out, size_t room);
/* The client makes TLS respond (such as key updates) and does not read the responses. */
bool silt_client_conn_is_chatty(const struct silt_client_conn *v);
/* What the socket does not accept stays in v->out. -1: broken. */
int silt_client_conn_flush(struct silt_client_conn *v);
int silt_client_conn_send(struct silt_client_conn *v, silt_slice bytes);
void silt_client_conn_shut(struct silt_client_conn *v);                 /* half-closes */
void silt_client_conn_deadline(struct silt_client_conn *v, int64_t ms); /* from now on */
/* Updates the epoll events; `reads`: input is wanted. */
void silt_client_conn_watch(struct silt_client_conn *v, bool reads);
void silt_client_conn_address(const struct sockaddr_in6 *from, char out[INET6_ADDRSTRLEN]);
/* The request is over; its response is in v->out or sent. */
void silt_client_conn_answered(struct silt_client_conn *v);
void silt_client_conn_cut(struct silt_client_conn *v); /* resets */
/* Call once after any event: continues whatever was waiting. */
void silt_client_conn_settle(struct silt_client_conn *v);

/* request.c. Each ends in silt_client_conn_answered or silt_client_conn_cut, now or later. */
/* The head of a request is v->in's beginning. false: it is not complete. `route` is one that siltd
 * let it in by, or NULL. */
bool silt_proxied_request_begin(struct silt_client_conn *v, struct silt_route *route,
                                uint32_t flags);
void silt_proxied_request_on_bytes(
    struct silt_client_conn *v); /* the client has sent some, or ended */
void silt_proxied_request_on_written(struct silt_client_conn *v); /* v->out is empty again */
void silt_proxied_request_on_late(struct silt_client_conn *v);
void silt_proxied_request_settle(struct silt_client_conn *v);
void silt_proxied_request_free(struct silt_proxied_request *x); /* the client is gone */
