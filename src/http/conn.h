/* SPDX-License-Identifier: Apache-2.0 */
/* conn: one client connection and its current exchange (a request and its response). Private to
 * this directory: conn.c handles events and timeouts, request_reader.c reads, answer.c and
 * response_head.c write, server.c accepts and closes, upgrade.c hands the connection over, and
 * internal_request.c runs requests without a connection.
 *
 * A handler's callbacks are called only directly from a loop callback, never from inside a function
 * that the handler called; what such a function finds out (the client is gone, more bytes are
 * buffered) is deferred. An idle connection owns nothing but this struct. */
#pragma once

#include "base/list.h"
#include "http/server.h"

/* IDLE --bytes--> HEAD --complete--> BODY --complete--> NOTHING --answered--> IDLE
 *                                      \----answered--> SKIP ----skipped------^
 *                                      \----taken over--> TAKEN --earlier responses sent--> CLOSED
 *  any --last response queued--> PARTING --written--> LINGER or CLOSED */
enum silt_http_request_reader {
    SILT_HTTP_IDLE,
    SILT_HTTP_HEAD,
    SILT_HTTP_BODY,    /* read for the handler, once it has chosen how */
    SILT_HTTP_SKIP,    /* an unwanted body, after its response */
    SILT_HTTP_NOTHING, /* the request is complete and being answered */
    SILT_HTTP_TAKEN,   /* its handler will take over the connection */
    SILT_HTTP_PARTING, /* the last response is being sent */
    SILT_HTTP_LINGER,  /* all sent; keeps reading for a while, because closing with unread bytes
                          sends a reset */
    SILT_HTTP_CLOSED,  /* buried */
};

struct silt_http_conn {
    struct silt_http_server *server; /* borrowed */
    void *tag;                       /* borrowed; set by the adopter */
    struct silt_watch watch;
    struct silt_timer timer; /* fires at the earlier of both deadlines, or before */
    struct silt_grave grave;
    struct silt_link link; /* in server->conns */
    struct silt_link todo; /* in server->todo while something is deferred */
    enum silt_http_request_reader intake;
    bool last;    /* no request after this one */
    bool clean;   /* when parting: no byte of the client's is left unread */
    bool halved;  /* the client shut down its side, as epoll reported */
    bool noisy;   /* bytes arrived while none were wanted: not watching for more */
    bool broken;  /* writing failed: the deferred work will close it */
    bool chunked; /* encoding of the body being read */
    bool raw;     /* upgraded: the body has no end and no deadline */
    struct silt_http_chunks chunks;
    uint64_t left;  /* bytes left of a body with a Content-Length */
    uint64_t taken; /* bytes of this body so far, decoded */
    size_t fresh;   /* body bytes since the deadline was last extended */
    int64_t read_by_ms, write_by_ms, linger_by_ms; /* 0: none */
    struct silt_buf in;                            /* read but not yet parsed */
    struct silt_buf out;
    size_t out_at;                       /* bytes of `out` already sent */
    struct silt_http_exchange *exchange; /* NULL between requests */
};

enum silt_http_wish { SILT_HTTP_UNDECIDED, SILT_HTTP_COLLECT, SILT_HTTP_CONSUME };

struct silt_http_exchange {
    struct silt_http_request request;
    struct silt_http_exchange *next;  /* in the list of spare exchanges */
    struct silt_http_conn *conn;      /* borrowed; NULL: an internal request */
    struct silt_http_internal *inner; /* borrowed; NULL: a request with a connection */
    struct silt_arena arena;
    struct silt_buf body;
    size_t body_counted; /* its share of server->body_bytes */
    uint64_t body_max;
    enum silt_http_wish wish;
    void (*on_body)(struct silt_http_request *r);
    void (*on_piece)(struct silt_http_request *r, silt_slice piece, bool end);
    void (*on_taken)(struct silt_http_request *r, int fd, silt_slice read);
    bool paused;
    bool continued;         /* 100 Continue has been sent */
    bool full;              /* the mark was reached: on_drain is due */
    bool streaming;         /* the response head has been sent */
    bool chunked, bodiless; /* how the response is sent */
    bool sized;
    uint64_t size_left; /* sized: bytes still to come */
    int status;
    int64_t started_us;
    struct silt_http_head head;
};

enum {
    SILT_HTTP_READ_SIZE =
        60 * 1024, /* as much as a handler passes on inside the machine in one frame */
    SILT_HTTP_SKIP_MAX = 64 * 1024,
    SILT_HTTP_BODIES_MAX =
        256 * 1024 * 1024,            /* memory for buffered bodies, all requests together */
    SILT_HTTP_SMALL_BODY = 64 * 1024, /* bodies up to this size may use as much again, so that a few
                                         large ones keep nobody else out */
};

struct silt_http_server {
    struct silt_loop *loop; /* borrowed */
    struct silt_watch watch;
    struct silt_timer todo_timer, drain_timer;
    struct silt_grave grave;
    struct silt_http_limits limits;
    struct silt_http_hooks hooks;
    int reserve; /* a spare descriptor, closed when no others are left */
    size_t count;
    struct silt_link conns, todo;
    struct silt_http_exchange *spare;
    size_t spares;
    uint64_t body_bytes;             /* memory of buffered bodies, all requests */
    struct silt_http_conn *batching; /* borrowed; the connection whose responses go to `batch` */
    struct silt_buf batch;           /* sent in one write when all bytes of a read are parsed */
    struct silt_buf refusal;
    int64_t told_ms; /* when too many connections were last logged */
    int64_t date_ms;
    char date[30];
    bool draining;
    void (*on_closed)(void *context);
    void *on_closed_context;
    char room[SILT_HTTP_READ_SIZE];
};

/* Takes fd. */
struct silt_http_conn *silt_http_conn_start(struct silt_http_server *s, int fd);
void silt_http_conn_enter(struct silt_http_conn *c, enum silt_http_request_reader next);
/* Whether bytes could be used now if any arrived. */
bool silt_http_conn_wants(const struct silt_http_conn *c);
void silt_http_conn_resume(struct silt_http_conn *c);
void silt_http_conn_lose(struct silt_http_conn *c); /* calls on_gone, closes */
void silt_http_conn_close(struct silt_http_conn *c);
/* The server answers in place of the handler and closes. */
void silt_http_conn_refuse(struct silt_http_conn *c, int status);
/* Updates watch and timer to match the state. */
void silt_http_conn_settle(struct silt_http_conn *c);
/* Closes the connection if it is idle while the server drains. */
void silt_http_conn_drain(struct silt_http_conn *c);
/* The response is queued: go on to the next request or close. */
void silt_http_conn_answered(struct silt_http_exchange *x);

/* Whether more of the body may arrive. */
static inline bool silt_http_conn_has_body(const struct silt_http_conn *c)
{
    return c->chunked || c->left > 0;
}

void silt_http_request_reader_read(struct silt_http_conn *c); /* epoll reports readable bytes */
void silt_http_request_reader_leftover(struct silt_http_conn *c);

/* Writes the server's own error response to a request, or to bytes that are not one. */
void silt_http_answer_refusal(struct silt_http_conn *c, int status);
/* Writes the head of a response that has no length and no end of its own. */
void silt_http_answer_switch(struct silt_http_exchange *x, silt_slice fields);
void silt_http_answer_continue(struct silt_http_exchange *x);
void silt_http_answer_flush(struct silt_http_conn *c);
/* Collects the responses of this connection from here on; the end of the batch sends them. */
void silt_http_answer_batch(struct silt_http_server *s, struct silt_http_conn *c);
void silt_http_answer_batch_end(struct silt_http_server *s);
size_t silt_http_answer_pending(const struct silt_http_conn *c);

enum silt_http_framing {
    SILT_HTTP_NO_BODY,
    SILT_HTTP_LENGTH,
    SILT_HTTP_SIZED, /* known length, body in pieces */
    SILT_HTTP_CHUNKED,
    SILT_HTTP_UNTIL_CLOSE,
};

struct silt_http_answer {
    int status;
    enum silt_http_framing framing;
    bool head_only; /* for HEAD: the body is counted, not sent */
    bool old;       /* HTTP/1.0 with keep-alive */
    silt_slice reason, type, fields, more_fields, body;
    uint64_t length; /* SILT_HTTP_SIZED */
};
/* Writes the head and, when it has a length, the body. */
void silt_http_lay_answer(struct silt_http_conn *c, struct silt_buf *b,
                          const struct silt_http_answer *a);

/* internal_request.c: the response side of requests without a connection. */
void silt_http_internal_begin(struct silt_http_internal *i, int status, silt_slice type);
void silt_http_internal_write(struct silt_http_internal *i, silt_slice bytes);
size_t silt_http_internal_pending(struct silt_http_internal *i);
void silt_http_internal_reply(struct silt_http_internal *i, int status, silt_slice type,
                              silt_slice body);
void silt_http_internal_end(struct silt_http_internal *i, bool whole);
void silt_http_internal_resume(struct silt_http_internal *i);

/* All earlier responses have been sent: hands the connection over. */
void silt_http_conn_hand_over(struct silt_http_conn *c);

void silt_http_server_defer(struct silt_http_conn *c);
void silt_http_server_left(struct silt_http_conn *c); /* the connection is closed */
struct silt_http_exchange *silt_http_server_spare(struct silt_http_server *s);
void silt_http_server_give_back(struct silt_http_exchange *x);
