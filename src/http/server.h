/* SPDX-License-Identifier: Apache-2.0 */
/* server: HTTP/1.1 connections on the loop, with limits and timeouts; one callback receives each
 * request as soon as its head is complete. The server owns connections and requests. Malformed or
 * oversized requests and timeouts are answered by the server itself. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "event/loop.h"
#include "http/parse.h"

struct silt_http_server;
struct silt_http_request;
struct silt_route;

struct silt_http_limits {
    size_t connections; /* further ones are accepted and closed at once, without a 503 (logged) */
    uint64_t body_max;  /* larger bodies: 413 and close */
    int64_t head_timeout_ms;  /* from the first to the last byte of a head; then 408 and close */
    int64_t body_timeout_ms;  /* between bytes of a body; then 408 and close */
    int64_t idle_timeout_ms;  /* between requests */
    int64_t write_timeout_ms; /* while a response waits and the client reads nothing; then the
                                 connection is cut */
};

enum { SILT_HTTP_INTERRUPTED = 409 };

struct silt_http_hooks {
    /* The head is complete. Must at once call exactly one of silt_http_collect, silt_http_consume
     * or a reply function (which skips the body). */
    void (*on_request)(void *context, struct silt_http_request *r);
    /* The server itself answers with an error (malformed, too large, timeout): fills a JSON body,
     * so that every error has the envelope. `content_type` is application/json. */
    void (*on_refusal)(void *context, int status, struct silt_buf *ret_body);
    /* After each response, for the access log and metrics. Status 499: the client left before it.
     * Input rejected before it was a request is seen only by on_refusal. */
    void (*on_answered)(void *context, const struct silt_http_request *r, int status, int64_t us);
    void *context;
    silt_slice extra_fields; /* "Name: value\r\n..." added to every response (CORS) */
};

/* Takes listen_fd; -1: connections come only from silt_http_server_adopt. */
int silt_http_server_open(struct silt_loop *loop, int listen_fd,
                          const struct silt_http_limits *limits,
                          const struct silt_http_hooks *hooks, struct silt_http_server **ret,
                          struct silt_error *e);
/* Stops accepting and finishes running responses with `Connection: close`. At the deadline requests
 * without a response get SILT_HTTP_INTERRUPTED, the remaining connections are cut a moment later;
 * then calls on_closed. */
void silt_http_server_drain(struct silt_http_server *s, int64_t deadline_ms,
                            void (*on_closed)(void *context), void *context);
void silt_http_server_free(struct silt_http_server *s); /* cuts all connections */
size_t silt_http_server_connections(const struct silt_http_server *s);
/* Adds a connection accepted elsewhere; takes fd. Each of its requests carries `tag`. */
void silt_http_server_adopt(struct silt_http_server *s, int fd, void *tag);
/* Ends the connections with this tag: tries once to send queued responses, then resets them. */
void silt_http_server_cut(struct silt_http_server *s, const void *tag);

struct silt_http_request {
    const struct silt_http_head *head; /* borrowed: valid until the response is complete */
    struct silt_arena *arena;          /* lives until the response is complete */
    silt_slice body;                /* silt_http_collect: the whole body, once its callback runs */
    void *owner;                    /* the handler's own */
    void *tag;                      /* of its connection, if adopted */
    const struct silt_route *route; /* set by whoever routed it; borrowed */
    silt_slice reason; /* of the response's status line, in the arena; empty: the standard one */
    silt_slice more_fields; /* response headers, also for errors of the server: "Name: value\r\n…",
                               in the arena; may be empty */
    /* After an upgrade: a half-close by the client ends the body (on_piece with `end`) and is not
     * treated as leaving. */
    bool halves;
    /* The client went away, or the server cut or refused the request: the request is gone after
     * this call. Called at most once, from the loop, never from inside a function below, and never
     * after reply, end or cut. NULL is fine. A client that half-closes is not gone. */
    void (*on_gone)(struct silt_http_request *r);
    /* The client has half-closed. It may be gone: only writing shows whether it still reads. NULL
     * is fine. */
    void (*on_halved)(struct silt_http_request *r);
    /* Returns the best buffer for the next bytes of a consumed body: *ret_size of them, not 0.
     * Called before each read that can use it; a piece may still come from elsewhere. NULL is
     * fine. */
    char *(*on_room)(struct silt_http_request *r, size_t *ret_size);
    /* A streamed response has room again (pending fell below half of the mark). */
    void (*on_drain)(struct silt_http_request *r);
};

/* Reads the whole body into memory (which grows with the bytes received, not with the announced
 * length), then calls on_body, after the caller has returned. All connections together have a limit
 * (503 beyond it). */
void silt_http_collect(struct silt_http_request *r, uint64_t max,
                       void (*on_body)(struct silt_http_request *r));
/* Delivers the body in pieces; `end` comes with the last one, which may be empty. While paused, no
 * piece is delivered and the client is held back. */
void silt_http_consume(struct silt_http_request *r, uint64_t max,
                       void (*on_piece)(struct silt_http_request *r, silt_slice piece, bool end));
void silt_http_pause(struct silt_http_request *r, bool paused);

/* Answers at once; bytes are copied. The request is gone after this call (or soon: do not use it).
 * `fields` may be empty or "Name: value\r\n…". Handles HEAD. May be called from inside on_request
 * (an unread body is skipped up to 64 KiB; beyond that the connection closes). */
void silt_http_reply(struct silt_http_request *r, int status, silt_slice content_type,
                     silt_slice fields, silt_slice body);
/* Begins a streamed response: chunked (HTTP/1.0: until close). */
void silt_http_begin(struct silt_http_request *r, int status, silt_slice content_type,
                     silt_slice fields);
/* The same with a Content-Length. Bytes written beyond it are dropped; ending early cuts the
 * connection. */
void silt_http_begin_sized(struct silt_http_request *r, int status, silt_slice content_type,
                           silt_slice fields, uint64_t length);
enum { SILT_HTTP_MARK = 256 * 1024 };
/* Queues (copies) the bytes and sends what it can. Never fails; the caller stops writing while
 * silt_http_pending(r) >= SILT_HTTP_MARK and continues in on_drain. One call = one chunk. */
void silt_http_write(struct silt_http_request *r, silt_slice bytes);
size_t
silt_http_pending(const struct silt_http_request *r); /* SILT_HTTP_MARK once the client is gone */
void silt_http_end(struct silt_http_request
                       *r); /* the response is complete; the request is gone after this call */
/* Switches protocols: answers 101 with these fields, delivers the client's bytes in pieces as
 * silt_http_consume does, without end or deadline, and sends written bytes as they are.
 * silt_http_end closes the connection. Must be called at once, on a request without a body that may
 * be upgraded (silt_http_may_upgrade). */
void silt_http_upgrade(struct silt_http_request *r, silt_slice fields,
                       void (*on_piece)(struct silt_http_request *r, silt_slice piece, bool end));
bool silt_http_may_upgrade(const struct silt_http_request *r);
/* The same for a request whose body has been collected. */
void silt_http_upgrade_late(struct silt_http_request *r, silt_slice fields,
                            void (*on_piece)(struct silt_http_request *r, silt_slice piece,
                                             bool end));
bool silt_http_may_upgrade_late(const struct silt_http_request *r);
/* Replaces the path before a handler has the request; `path` lives in the arena. */
void silt_http_redirect(struct silt_http_request *r, silt_slice path);
void silt_http_redirect_query(struct silt_http_request *r, silt_slice query);
/* The uid of the peer of a unix socket; UINT32_MAX if unknown. */
uint32_t silt_http_peer(const struct silt_http_request *r);
int silt_http_connection(
    const struct silt_http_request *r); /* borrowed; -1: the connection is gone */
/* Gives the connection away instead of answering; call at once. When all earlier requests are
 * answered, calls on_taken with the socket (non-blocking; the callee owns it) and the bytes that
 * the client sent after the head of this request (its body included), valid during the call.
 * Afterwards the request is gone and the server no longer counts the connection. on_gone may be
 * called instead. */
void silt_http_take_over(struct silt_http_request *r,
                         void (*on_taken)(struct silt_http_request *r, int fd, silt_slice read));
/* Breaks the connection because the response cannot be finished. The request is gone after this
 * call. */
void silt_http_cut(struct silt_http_request *r);
