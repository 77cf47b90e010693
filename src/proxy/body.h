/* SPDX-License-Identifier: Apache-2.0 */
/* body: where a message's body ends, as it comes, and how it is written on. */
#pragma once

#include "base/buf.h"
#include "http/parse.h"

enum silt_body_kind {
    SILT_BODY_NONE,
    SILT_BODY_LENGTH,
    SILT_BODY_CHUNKED,
    SILT_BODY_TO_END, /* of the connection */
};

struct silt_body {
    enum silt_body_kind kind;
    uint64_t left;
    struct silt_http_chunks chunks;
};

struct silt_body silt_body_of_request(const struct silt_http_head *h);
struct silt_body silt_body_of_answer(const struct silt_http_head *h, bool to_head);

/* Consumes from *in, as silt_http_dechunk does. One TO_END has no END of its own. */
enum silt_http_chunk silt_body_next(struct silt_body *b, silt_slice *in, silt_slice *ret_data);

enum { SILT_BODY_ROOM = 24 }; /* what one piece, or the end, takes beside its bytes */
void silt_body_put(enum silt_body_kind as, struct silt_buf *out, silt_slice data);
void silt_body_end(enum silt_body_kind as, struct silt_buf *out);
