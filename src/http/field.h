/* SPDX-License-Identifier: Apache-2.0 */
/* field: parses conditional and range headers (RFC 9110, 13 and 14). Pure. */
#pragma once

#include "base/slice.h"

enum silt_http_part {
    SILT_HTTP_WHOLE, /* no range, or an invalid one, which RFC 9110 lets us ignore */
    SILT_HTTP_PART,
    SILT_HTTP_LAST_PART, /* the last `length` bytes; the offset is not known yet */
    SILT_HTTP_NO_PART,   /* 416 */
};
struct silt_http_range {
    uint64_t from;
    uint64_t length; /* 0: up to the end */
};

/* Parses a single byte range; the size is not needed yet. Several ranges count as none. */
enum silt_http_part silt_http_range_read(silt_slice field, struct silt_http_range *ret);
/* Fits the range into `size` bytes. */
enum silt_http_part silt_http_range_fit(enum silt_http_part part, uint64_t size,
                                        struct silt_http_range *r);

/* Whether a list of entity tags (or *) contains this one. `weak`: ignore W/. */
bool silt_http_etag_in(silt_slice list, silt_slice etag, bool weak);
/* Whether Accept names a type literally. */
bool silt_http_accepts(silt_slice accept, silt_slice type);

enum { SILT_HTTP_DATE_SIZE = 30 };
void silt_http_date(int64_t seconds, char out[SILT_HTTP_DATE_SIZE]); /* seconds since 1970 */
