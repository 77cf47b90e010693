/* SPDX-License-Identifier: Apache-2.0 */
/* sse: cuts a stream of server-sent events, arriving in any pieces, into the data of each event. */
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
/* Consumes from *in. 1: an event is complete, its data valid until the next call; 0: all of *in is
 * used; -1: an event larger than the maximum. */
int silt_sse_next(struct silt_sse *s, silt_slice *in, silt_slice *ret_data, struct silt_error *e);
