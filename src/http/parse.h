/* SPDX-License-Identifier: Apache-2.0 */
/* parse: HTTP/1.1 heads and chunked bodies (RFC 9112), strict: reject, never repair. Pure;
 * allocates nothing: slices point into the given bytes. */
#pragma once

#include "base/slice.h"

enum { SILT_HTTP_FIELDS_MAX = 100, SILT_HTTP_HEAD_MAX = 16384 };

struct silt_http_field {
    silt_slice name;
    silt_slice value;
};

struct silt_http_head {
    silt_slice method, target, host; /* request */
    silt_slice path, query;          /* parts of the target; raw, undecoded; query without '?' */
    silt_slice reason;               /* response */
    int status;                      /* response */
    int minor;                       /* HTTP/1.minor */
    bool chunked, has_length, close, keep_alive, upgrade, expect_continue;
    uint64_t length;
    size_t count;
    struct silt_http_field fields[SILT_HTTP_FIELDS_MAX];
};

enum silt_http_kind {
    SILT_HTTP_REQUEST, /* any but CONNECT */
    SILT_HTTP_RESPONSE,
    SILT_HTTP_CONNECT, /* the target is not parsed, Host is optional, and there is no body */
};

/* >0: size of the head; 0: incomplete; <0: minus the status to answer with. */
int silt_http_parse(struct silt_http_head *h, silt_slice bytes, enum silt_http_kind kind);
silt_slice silt_http_field(const struct silt_http_head *h,
                           silt_slice name); /* the first one, or {NULL,0} */
/* Whether a comma-separated list contains the word, ignoring case. */
bool silt_http_lists(silt_slice list, silt_slice word);
/* Whether Origin names the host that the request was sent to. False without an Origin. */
bool silt_http_is_own(const struct silt_http_head *h);

struct silt_http_chunks {
    uint64_t left;
    unsigned state;
    unsigned junk;
}; /* initialize to zero */
enum silt_http_chunk {
    SILT_HTTP_CHUNK_BAD = -1,
    SILT_HTTP_CHUNK_MORE,
    SILT_HTTP_CHUNK_DATA,
    SILT_HTTP_CHUNK_END
};
/* Consumes from *in; DATA returns a slice of it. Rejects extensions, drops trailers. */
enum silt_http_chunk silt_http_dechunk(struct silt_http_chunks *c, silt_slice *in,
                                       silt_slice *ret_data);
