/* SPDX-License-Identifier: Apache-2.0 */
/* server: HTTP/1.1 connections on the loop, with limits and deadlines; each request is handed to
 * one callback as soon as its head is there. The server owns connections and requests. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "event/loop.h"
#include "http/parse.h"

struct silt_http_server;
struct silt_http_request;

struct silt_http_limits {
    size_t connections;       /* more are accepted and answered 503-free: closed at once (logged) */
    uint64_t body_max;        /* 413 and close beyond */
    int64_t head_timeout_ms;  /* from the first byte of a head to its end: 408 and close */
    int64_t body_timeout_ms;  /* silence inside a body: 408 and close */
    int64_t idle_timeout_ms;  /* between requests */
    int64_t write_timeout_ms; /* no byte taken by the client while an answer waits: cut */
};

struct silt_http_hooks {
    /* The head is complete. Must call exactly one of silt_http_collect, silt_http_consume or (body
     * is then skipped) a reply function, at once. */
    void (*on_request)(void *context, struct silt_http_request *r);
    /* An answer that the server itself gives (malformed, too large, timeout): fills a JSON error
     * body so that every error has the envelope. `content_type` is application/json. */
    void (*on_refusal)(void *context, int status, struct silt_buf *ret_body);
    /* After each answer: for the access log and metrics. 499: the client left before it. What is
     * refused before it is a request is seen by on_refusal only. */
    void (*on_answered)(void *context, const struct silt_http_request *r, int status, int64_t us);
    void *context;
    silt_slice extra_fields; /* "Name: value\r\n..." on every response (CORS) */
};

/* Takes listen_fd; -1: it only gets connections by silt_http_server_adopt. */
int silt_http_server_open(struct silt_loop *loop, int listen_fd,
                          const struct silt_http_limits *limits,
                          const struct silt_http_hooks *hooks, struct silt_http_server **ret,
                          struct silt_error *e);
/* Stops accepting, finishes running answers with `Connection: close`, cuts what is left at the
 * deadline, then calls on_closed. */
void silt_http_server_drain(struct silt_http_server *s, int64_t deadline_ms,
                            void (*on_closed)(void *context), void *context);
void silt_http_server_free(struct silt_http_server *s); /* cuts everything */
size_t silt_http_server_connections(const struct silt_http_server *s);
/* A connection that came in elsewhere: takes fd. `tag` is seen in each of its requests. */
void silt_http_server_adopt(struct silt_http_server *s, int fd, void *tag);
/* Those with this tag end: what was answered and is not sent yet is tried once, then they are reset. */
void silt_http_server_cut(struct silt_http_server *s, const void *tag);

struct silt_http_request {
    const struct silt_http_head *head; /* borrowed: valid until the answer is complete */
    struct silt_arena *arena;          /* lives until the answer is complete */
    silt_slice body;                   /* silt_http_collect: the whole, when its callback runs */
    void *owner;                       /* the handler's own */
    void *tag;                         /* of its connection, if that was adopted */
    silt_slice more_fields;            /* of the answer, whoever gives it: "Name: value\r\n…", in the arena; may be empty */
    /* Upgraded: the client's half-close is the end of the body (on_piece with `end`), not its leaving. */
    bool halves;
    /* The client went away, or the server cut or refused the request: it is gone after this call.
     * Called at most once, from the loop, never from inside a function below, and never after
     * reply, end or cut. NULL is fine. A client that half-closes is not gone. */
    void (*on_gone)(struct silt_http_request *r);
    /* The client sends no more. It may be gone: whether it still reads shows when something is
     * written. NULL is fine. */
    void (*on_halved)(struct silt_http_request *r);
    /* Where the next bytes of a consumed body would lie best: *ret_size of them, not 0. Asked before each read
     * that may go there; a piece can come from elsewhere all the same. NULL is fine. */
    char *(*on_room)(struct silt_http_request *r, size_t *ret_size);
    /* A streamed answer has room again (pending fell below half of the mark). */
    void (*on_drain)(struct silt_http_request *r);
};

/* Reads the whole body into memory (memory grows with what arrives, not with what is announced),
 * then calls on_body, after the caller has returned. All connections together have a ceiling
 * (503 beyond). */
void silt_http_collect(struct silt_http_request *r, uint64_t max,
                       void (*on_body)(struct silt_http_request *r));
/* Hands the body over in pieces; `end` with the last (possibly empty) one. While paused nothing
 * more comes and the client is held back. */
void silt_http_consume(struct silt_http_request *r, uint64_t max,
                       void (*on_piece)(struct silt_http_request *r, silt_slice piece, bool end));
void silt_http_pause(struct silt_http_request *r, bool paused);

/* Answers at once; bytes are copied. The request is gone after this call (or soon: do not use it).
 * `fields` may be empty or "Name: value\r\n…". Knows HEAD. May be called from inside on_request (an
 * unread body is skipped up to 64 KiB, else the connection closes). */
void silt_http_reply(struct silt_http_request *r, int status, silt_slice content_type,
                     silt_slice fields, silt_slice body);
/* A streamed answer: chunked (HTTP/1.0: until close). */
void silt_http_begin(struct silt_http_request *r, int status, silt_slice content_type,
                     silt_slice fields);
/* The same with a Content-Length. What is written beyond it is left out; an end before it cuts. */
void silt_http_begin_sized(struct silt_http_request *r, int status, silt_slice content_type, silt_slice fields,
                           uint64_t length);
enum { SILT_HTTP_MARK = 256 * 1024 };
/* Queues (copies) and sends what it can. Never refuses; the caller stops feeding while
 * silt_http_pending(r) >= SILT_HTTP_MARK and goes on in on_drain. One call = one chunk. */
void silt_http_write(struct silt_http_request *r, silt_slice bytes);
size_t silt_http_pending(const struct silt_http_request *r); /* the mark, once the client is gone */
void silt_http_end(struct silt_http_request *r); /* complete; the request is gone after this call */
/* What the client says from here on is no HTTP: answers 101 with these fields, hands over what comes in pieces as
 * silt_http_consume does, without an end and without a deadline, and sends what is written as it is. silt_http_end ends the
 * connection. At once, for a request without a body that may be upgraded (silt_http_may_upgrade). */
void silt_http_upgrade(struct silt_http_request *r, silt_slice fields,
                       void (*on_piece)(struct silt_http_request *r, silt_slice piece, bool end));
bool silt_http_may_upgrade(const struct silt_http_request *r);
/* The same for a request whose body was collected. */
void silt_http_upgrade_late(struct silt_http_request *r, silt_slice fields,
                            void (*on_piece)(struct silt_http_request *r, silt_slice piece, bool end));
bool silt_http_may_upgrade_late(const struct silt_http_request *r);
/* Before a handler has it: its path is `path` from now on, which lives in the arena. */
void silt_http_redirect(struct silt_http_request *r, silt_slice path);
void silt_http_redirect_query(struct silt_http_request *r, silt_slice query);
/* The uid of who is at the other end of a unix socket; UINT32_MAX: not known. */
uint32_t silt_http_peer(const struct silt_http_request *r);
int silt_http_connection(const struct silt_http_request *r); /* borrowed; -1: it is gone */
/* Gives the connection away instead of an answer, at once: when everything before this request is answered, on_taken is
 * called with the socket, which is the callee's (non-blocking), and with what the client has said behind the head of this request (its body, if
 * it has one), valid during the call. The request is gone after that; on_gone may come instead. The server counts it no more. */
void silt_http_take_over(struct silt_http_request *r,
                         void (*on_taken)(struct silt_http_request *r, int fd, silt_slice read));
/* Breaks the connection: the answer cannot be finished. The request is gone after this call. */
void silt_http_cut(struct silt_http_request *r);
