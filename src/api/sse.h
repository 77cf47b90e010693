/* SPDX-License-Identifier: Apache-2.0 */
/* sse: a streamed answer of typed events. Each has an `event:` line and one line of JSON that names
 * the type again; silence is filled with comments, so that nobody in between takes the stream for
 * dead. */
#pragma once

#include "api/reply.h"
#include "event/loop.h"

struct silt_sse {
    struct silt_http_request *request; /* borrowed */
    struct silt_loop *loop;            /* borrowed */
    struct silt_timer keepalive;
    bool begun; /* the status line is out */
};

void silt_sse_init(struct silt_sse *s, struct silt_loop *loop, struct silt_http_request *r);
void silt_sse_begin(struct silt_sse *s); /* fine when it has */
/* One event: open, members, send. */
void silt_sse_open(struct silt_buf *b, const char *type);
void silt_sse_send(struct silt_sse *s, struct silt_buf *b);
/* The client sends no more: a comment finds out whether it still reads. */
void silt_sse_probe(struct silt_sse *s);
/* Before the owner goes. The request has no callbacks after it; the caller may still refuse it. */
struct silt_http_request *silt_sse_fini(struct silt_sse *s);
