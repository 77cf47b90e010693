/* SPDX-License-Identifier: Apache-2.0 */
/* body_framing: finds the end of an HTTP body while it arrives, and frames the body again when it
 * is forwarded. */
#pragma once

#include "base/buf.h"
#include "http/parse.h"

enum silt_body_framing_kind {
    SILT_BODY_FRAMING_NONE,
    SILT_BODY_FRAMING_LENGTH,
    SILT_BODY_FRAMING_CHUNKED,
    SILT_BODY_FRAMING_TO_END, /* of the connection */
};

struct silt_body_framing {
    enum silt_body_framing_kind kind;
    uint64_t left;
    struct silt_http_chunks chunks;
};

struct silt_body_framing silt_body_framing_of_request(const struct silt_http_head *h);
struct silt_body_framing silt_body_framing_of_answer(const struct silt_http_head *h, bool to_head);

/* Consumes from *in, as silt_http_dechunk does. One TO_END has no END of its own. */
enum silt_http_chunk silt_body_framing_next(struct silt_body_framing *b, silt_slice *in,
                                            silt_slice *ret_data);

enum { SILT_BODY_FRAMING_ROOM = 24 }; /* what one piece, or the end, takes beside its bytes */
void silt_body_framing_put(enum silt_body_framing_kind as, struct silt_buf *out, silt_slice data);
void silt_body_framing_end(enum silt_body_framing_kind as, struct silt_buf *out);
