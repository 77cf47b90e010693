/* SPDX-License-Identifier: Apache-2.0 */
/* inner: a request that came inside the bytes of another connection and is answered there. Its handler cannot tell. */
#pragma once

#include "http/server.h"

struct silt_http_inner;

struct silt_http_inner_sink { /* borrowed: must outlive the request, or leave it */
    /* A whole answer; the last call. */
    void (*reply)(struct silt_http_inner_sink *s, int status, silt_slice type, silt_slice body);
    /* One in pieces. */
    void (*begin)(struct silt_http_inner_sink *s, int status, silt_slice type);
    void (*write)(struct silt_http_inner_sink *s, silt_slice bytes);
    size_t (*pending)(const struct silt_http_inner_sink *s); /* as silt_http_pending */
    void (*end)(struct silt_http_inner_sink *s, bool whole); /* the last call */
    /* A body that comes in pieces is wanted again; NULL for one that is whole. */
    void (*room)(struct silt_http_inner_sink *s);
};

/* Copies head and body. NULL: the head is not one of a request, or there is no memory for it (*e tells). */
struct silt_http_inner *silt_http_inner_new(struct silt_http_server *s, silt_slice head, silt_slice body,
                                            struct silt_http_inner_sink *sink, struct silt_error *e);
/* One whose body is not there yet: the head says that it is chunked. */
struct silt_http_inner *silt_http_inner_new_fed(struct silt_http_server *s, silt_slice head, struct silt_http_inner_sink *sink,
                                                struct silt_error *e);
/* Whether the handler takes a piece of such a body now; if not, the sink's `room` tells when. */
bool silt_http_inner_wants(const struct silt_http_inner *i);
/* While it is wanted: at most SILT_HTTP_FEED_MAX bytes. The sink may be called from inside. */
enum { SILT_HTTP_FEED_MAX = 60 * 1024 };
void silt_http_inner_feed(struct silt_http_inner *i, silt_slice piece, bool end);
/* Of an answer in pieces, once it has begun: its size, if that is known. */
bool silt_http_inner_size(const struct silt_http_inner *i, uint64_t *ret);
struct silt_http_request *silt_http_inner_request(struct silt_http_inner *i);
/* Once, when a handler has the request: its body follows. The sink may be called from inside. */
void silt_http_inner_deliver(struct silt_http_inner *i);
void silt_http_inner_drain(struct silt_http_inner *i); /* what was pending is not any more */
/* Whoever asked is gone: the handler is told, the sink is not. Not from inside a callback of the sink. */
void silt_http_inner_leave(struct silt_http_inner *i);
