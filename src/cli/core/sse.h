/* SPDX-License-Identifier: Apache-2.0 */
/* sse: splits a stream of server-sent events, received in pieces of any size, into the data of each
 * event. */
#pragma once

#include "base/buf.h"

enum { SILT_SSE_EVENT_MAX = 16 * 1024 * 1024 };

struct silt_sse {
    struct silt_buf line; /* unfinished */
    struct silt_buf data; /* of the unfinished event */
    bool has_data;
};

void silt_sse_init(struct silt_sse *s);
void silt_sse_fini(struct silt_sse *s);
/* Consumes from *in. 1: a complete event, its data valid until the next call; 0: *in is used up;
 * -1: the event is larger than the maximum. */
int silt_sse_next(struct silt_sse *s, silt_slice *in, silt_slice *ret_data, struct silt_error *e);
