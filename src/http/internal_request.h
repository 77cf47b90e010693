/* SPDX-License-Identifier: Apache-2.0 */
/* internal_request: a request that arrived inside another connection (a WebSocket) and is answered
 * there; its handler sees no difference. The server owns it until the sink's last call or
 * silt_http_internal_leave. Creating one fails on a malformed head or without memory. */
#pragma once

#include "http/server.h"

struct silt_http_internal;

struct silt_http_internal_sink { /* borrowed: must outlive the request, or call
                                    silt_http_internal_leave */
    /* A complete response; the last call. */
    void (*reply)(struct silt_http_internal_sink *s, int status, silt_slice type, silt_slice body);
    /* A response in pieces. */
    void (*begin)(struct silt_http_internal_sink *s, int status, silt_slice type);
    void (*write)(struct silt_http_internal_sink *s, silt_slice bytes);
    size_t (*pending)(const struct silt_http_internal_sink *s); /* as silt_http_pending */
    void (*end)(struct silt_http_internal_sink *s, bool whole); /* the last call */
    /* The handler wants the next piece of a streamed body; NULL if the body is complete. */
    void (*room)(struct silt_http_internal_sink *s);
};

/* Copies head and body. NULL: the head is malformed, or there is no memory for it (see *e). */
struct silt_http_internal *silt_http_internal_new(struct silt_http_server *s, silt_slice head,
                                                  silt_slice body,
                                                  struct silt_http_internal_sink *sink,
                                                  struct silt_error *e);
/* A request whose body is streamed: the head must say that it is chunked. */
struct silt_http_internal *silt_http_internal_new_fed(struct silt_http_server *s, silt_slice head,
                                                      struct silt_http_internal_sink *sink,
                                                      struct silt_error *e);
/* Whether the handler accepts a piece of a streamed body now; if not, the sink's `room` is called
 * when it does. */
bool silt_http_internal_wants(const struct silt_http_internal *i);
/* Only while wanted: at most SILT_HTTP_FEED_MAX bytes. May call the sink. */
enum { SILT_HTTP_FEED_MAX = 60 * 1024 };
void silt_http_internal_feed(struct silt_http_internal *i, silt_slice piece, bool end);
/* The size of a response in pieces, once it has begun and if it is known. */
bool silt_http_internal_size(const struct silt_http_internal *i, uint64_t *ret);
struct silt_http_request *silt_http_internal_request(struct silt_http_internal *i);
/* Call once, after a handler has taken the request: delivers its body. May call the sink. */
void silt_http_internal_deliver(struct silt_http_internal *i);
void silt_http_internal_drain(struct silt_http_internal *i); /* the pending bytes have been sent */
/* The requester is gone: calls the handler's on_gone, but not the sink. Do not call it from a
 * callback of the sink. */
void silt_http_internal_leave(struct silt_http_internal *i);
