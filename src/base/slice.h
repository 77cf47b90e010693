/* SPDX-License-Identifier: Apache-2.0 */
/* slice: bytes from somewhere, borrowed, with a length and without a terminator. */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const char *data;
    size_t len;
} silt_slice;

#define SILT_LIT(text) ((silt_slice){"" text, sizeof(text) - 1})

static inline silt_slice silt_slice_of(const char *text)
{
    return (silt_slice){text, strlen(text)};
}

static inline bool silt_slice_eq(silt_slice a, silt_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* ASCII letters only. */
bool silt_slice_ieq(silt_slice a, silt_slice b);
bool silt_slice_starts(silt_slice s, silt_slice prefix);
bool silt_slice_has_byte(silt_slice s, char byte);
/* Same time for equal lengths, whatever the bytes are. */
bool silt_slice_eq_secret(silt_slice a, silt_slice b);
/* Cuts `head` off `s` up to (not including) `byte`; false when `s` is empty. Empty fields are kept. */
bool silt_slice_split(silt_slice *s, char byte, silt_slice *ret_head);
silt_slice silt_slice_trim(silt_slice s); /* spaces and tabs */

/* Decimal digits only: no sign, no space, no leading zero beside "0" itself. */
int silt_slice_to_u64(silt_slice s, uint64_t min, uint64_t max, uint64_t *ret, struct silt_error *e);
/* Copies with a terminator; refuses NUL bytes and what does not fit. */
int silt_slice_to_cstr(silt_slice s, char *out, size_t size, struct silt_error *e);
int silt_slice_to_path(silt_slice s, char out[PATH_MAX], struct silt_error *e);
bool silt_slice_is_utf8(silt_slice s);
