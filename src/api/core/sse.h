/* SPDX-License-Identifier: Apache-2.0 */
/* sse: a response streamed as server-sent events. Each event has an `event:` line and one line of
 * JSON that repeats the type. Comments fill idle periods, so that no intermediary times out.
 * Embedded in its owner; runs in siltd's loop. */
#pragma once

#include "api/core/reply.h"
#include "event/loop.h"

struct silt_sse {
    struct silt_http_request *request; /* borrowed */
    struct silt_loop *loop;            /* borrowed */
    struct silt_timer keepalive;
    bool begun; /* the response head has been sent */
};

void silt_sse_init(struct silt_sse *s, struct silt_loop *loop, struct silt_http_request *r);
void silt_sse_begin(struct silt_sse *s); /* no effect the second time */
/* Writing one event: open, add members, send. */
void silt_sse_open(struct silt_buf *b, const char *type);
void silt_sse_send(struct silt_sse *s, struct silt_buf *b);
/* Sends an event that has been written as a whole, but for its last line. */
void silt_sse_send_raw(struct silt_sse *s, struct silt_buf *b);
/* Sends an event as it is, with its last line. */
void silt_sse_send_whole(struct silt_sse *s, silt_slice event);
/* An event `output` of a program's bytes; `x` keeps a character that is cut between two. */
void silt_sse_send_output(struct silt_sse *s, struct silt_json_escape *x, silt_slice bytes);
/* The client has shut down its side: sends a comment to find out whether it still reads. */
void silt_sse_probe(struct silt_sse *s);
/* Call before the owner is freed. Afterwards the request has no callbacks; the caller may still
 * answer it with an error. */
struct silt_http_request *silt_sse_fini(struct silt_sse *s);
