/* SPDX-License-Identifier: Apache-2.0 */
/* conn: one client's connection, and the exchange (a request and its answer) that it is busy with.
 * Private to this folder: conn.c waits and times, intake.c reads, answer.c and lay.c write,
 * server.c accepts and ends, takeover.c gives it to others, inner.c has requests without one.
 *
 * Callbacks of a handler run from the top of a loop callback only, never from inside a function
 * that a handler called: what such a function finds out (the client is gone, more bytes wait) is
 * deferred. An idle connection owns nothing but this struct. */
#pragma once

#include "base/list.h"
#include "http/server.h"

/*  IDLE --bytes--> HEAD --complete--> BODY --complete--> NOTHING --answered--> IDLE
 *                                       \----answered--> SKIP ----skipped------^
 *                                       \----taken over--> TAKEN --answers before it are out--> CLOSED
 *  any --last answer given--> PARTING --written--> LINGER or CLOSED                  */
enum silt_http_intake {
    SILT_HTTP_IDLE,
    SILT_HTTP_HEAD,
    SILT_HTTP_BODY,    /* for the handler, once it has said how it wants it */
    SILT_HTTP_SKIP,    /* a body that nobody wants, after its answer */
    SILT_HTTP_NOTHING, /* the request is whole: it is being answered */
    SILT_HTTP_TAKEN,   /* its handler is going to have the connection itself */
    SILT_HTTP_PARTING, /* the last answer is on its way out */
    SILT_HTTP_LINGER,  /* it is out; reads on for a while, because closing on unread bytes resets */
    SILT_HTTP_CLOSED,  /* buried */
};

struct silt_http_conn {
    struct silt_http_server *server; /* borrowed */
    void *tag;                       /* borrowed; the adopter's */
    struct silt_watch watch;
    struct silt_timer timer; /* rings at the earlier of both deadlines, or before */
    struct silt_grave grave;
    struct silt_link link; /* in server->conns */
    struct silt_link todo; /* in server->todo while something is deferred */
    enum silt_http_intake intake;
    bool last;    /* no request after this one */
    bool clean;   /* when parting: nothing of the client's is left unread */
    bool halved;  /* the client shut its side, as epoll told */
    bool noisy;   /* bytes arrived while none were wanted: epoll is not asked for more */
    bool broken;  /* writing failed: will be closed by what is deferred */
    bool chunked; /* the body that is being read */
    bool raw;     /* upgraded: the body has no end and no deadline */
    struct silt_http_chunks chunks;
    uint64_t left;                                 /* of a body with a length */
    uint64_t taken;                                /* of this body, decoded */
    size_t fresh;                                  /* body bytes since the deadline was moved */
    int64_t read_by_ms, write_by_ms, linger_by_ms; /* 0: none */
    struct silt_buf in;                            /* read, not yet used */
    struct silt_buf out;
    size_t out_at;                       /* of out: what is sent already */
    struct silt_http_exchange *exchange; /* NULL between requests */
};

enum silt_http_wish { SILT_HTTP_UNDECIDED, SILT_HTTP_COLLECT, SILT_HTTP_CONSUME };

struct silt_http_exchange {
    struct silt_http_request request;
    struct silt_http_exchange *next; /* while spare */
    struct silt_http_conn *conn;     /* borrowed; NULL: an inner request */
    struct silt_http_inner *inner;   /* borrowed; NULL: one with a connection */
    struct silt_arena arena;
    struct silt_buf body;
    size_t body_counted; /* of it in server->body_bytes */
    uint64_t body_max;
    enum silt_http_wish wish;
    void (*on_body)(struct silt_http_request *r);
    void (*on_piece)(struct silt_http_request *r, silt_slice piece, bool end);
    void (*on_taken)(struct silt_http_request *r, int fd, silt_slice read);
    bool paused;
    bool continued;         /* 100 Continue is sent */
    bool full;              /* the mark was reached: owes an on_drain */
    bool streaming;         /* the head of the answer is out */
    bool chunked, bodiless; /* how the answer is sent */
    bool sized;
    uint64_t size_left;     /* sized: bytes that are still to come */
    int status;
    int64_t started_us;
    struct silt_http_head head;
};

enum {
    SILT_HTTP_READ_SIZE = 60 * 1024, /* what a handler passes on in one frame inside the machine */
    SILT_HTTP_SKIP_MAX = 64 * 1024,
    SILT_HTTP_BODIES_MAX = 256 * 1024 * 1024, /* memory of bodies that are kept, all requests together */
    SILT_HTTP_SMALL_BODY = 64 * 1024,         /* has room beyond that: a few large ones keep nobody else out */
};

struct silt_http_server {
    struct silt_loop *loop; /* borrowed */
    struct silt_watch watch;
    struct silt_timer todo_timer, drain_timer;
    struct silt_grave grave;
    struct silt_http_limits limits;
    struct silt_http_hooks hooks;
    int reserve; /* a descriptor to give up when there are no more */
    size_t count;
    struct silt_link conns, todo;
    struct silt_http_exchange *spare;
    size_t spares;
    uint64_t body_bytes;             /* memory of bodies that are kept, all requests */
    struct silt_http_conn *batching; /* borrowed; whose answers go to `batch` */
    struct silt_buf batch;           /* sent in one write when the bytes of a read are used up */
    struct silt_buf refusal;
    int64_t told_ms; /* when the log last heard of too many connections */
    int64_t date_ms;
    char date[30];
    bool draining;
    void (*on_closed)(void *context);
    void *on_closed_context;
    char room[SILT_HTTP_READ_SIZE];
};

/* Takes fd. */
struct silt_http_conn *silt_http_conn_start(struct silt_http_server *s, int fd);
void silt_http_conn_enter(struct silt_http_conn *c, enum silt_http_intake next);
/* Whether bytes, if there were any, could be used now. */
bool silt_http_conn_wants(const struct silt_http_conn *c);
void silt_http_conn_resume(struct silt_http_conn *c);
void silt_http_conn_lose(struct silt_http_conn *c); /* tells the handler, closes */
void silt_http_conn_close(struct silt_http_conn *c);
/* The server answers instead of the handler, and parts. */
void silt_http_conn_refuse(struct silt_http_conn *c, int status);
/* Brings watch and timer in line with the state. */
void silt_http_conn_settle(struct silt_http_conn *c);
/* Parts from a client that is idle when the server is to end. */
void silt_http_conn_drain(struct silt_http_conn *c);
/* The answer is queued: on to the next request or to the end. */
void silt_http_conn_answered(struct silt_http_exchange *x);

/* Some of the body may still come. */
static inline bool silt_http_conn_has_body(const struct silt_http_conn *c)
{
    return c->chunked || c->left > 0;
}

void silt_http_intake_read(struct silt_http_conn *c); /* epoll says that there are bytes */
void silt_http_intake_leftover(struct silt_http_conn *c);

/* What the server says of a request, or of what should have been one, on its own account. */
void silt_http_answer_refusal(struct silt_http_conn *c, int status);
/* The head of an answer that has no length and no end of its own. */
void silt_http_answer_switch(struct silt_http_exchange *x, silt_slice fields);
void silt_http_answer_continue(struct silt_http_exchange *x);
void silt_http_answer_flush(struct silt_http_conn *c);
/* From here on the answers of this connection gather; the end sends them. */
void silt_http_answer_batch(struct silt_http_server *s, struct silt_http_conn *c);
void silt_http_answer_batch_end(struct silt_http_server *s);
size_t silt_http_answer_pending(const struct silt_http_conn *c);

enum silt_http_framing {
    SILT_HTTP_NO_BODY,
    SILT_HTTP_LENGTH,
    SILT_HTTP_SIZED, /* the length is known, the body comes in pieces */
    SILT_HTTP_CHUNKED,
    SILT_HTTP_UNTIL_CLOSE,
};

struct silt_http_answer {
    int status;
    enum silt_http_framing framing;
    bool head_only; /* the body is measured, not sent */
    bool old;       /* HTTP/1.0 that asked to stay */
    silt_slice type, fields, more_fields, body;
    uint64_t length; /* SILT_HTTP_SIZED */
};
/* Head and, when it has a length, body. */
void silt_http_lay_answer(struct silt_http_conn *c, struct silt_buf *b,
                          const struct silt_http_answer *a);

/* Of a request without a connection of its own: inner.c. */
void silt_http_inner_begin(struct silt_http_inner *i, int status, silt_slice type);
void silt_http_inner_write(struct silt_http_inner *i, silt_slice bytes);
size_t silt_http_inner_pending(struct silt_http_inner *i);
void silt_http_inner_reply(struct silt_http_inner *i, int status, silt_slice type, silt_slice body);
void silt_http_inner_end(struct silt_http_inner *i, bool whole);
void silt_http_inner_resume(struct silt_http_inner *i);

/* Nothing of ours is on its way out any more: hands the connection over. */
void silt_http_conn_hand_over(struct silt_http_conn *c);

void silt_http_server_defer(struct silt_http_conn *c);
void silt_http_server_left(struct silt_http_conn *c); /* the connection is closed */
struct silt_http_exchange *silt_http_server_spare(struct silt_http_server *s);
void silt_http_server_give_back(struct silt_http_exchange *x);
