/* SPDX-License-Identifier: Apache-2.0 */
/* slice: borrowed bytes with a length and no terminator, usually from outside. */
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

/* Whether `c` is one of the characters of `set`. Never true for NUL, unlike strchr. */
static inline bool silt_is_any(char c, const char *set)
{
    return c != 0 && strchr(set, c) != NULL;
}

/* The value of a hexadecimal digit of either case; -1: it is none. */
static inline int silt_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* ASCII letters only. */
bool silt_slice_ieq(silt_slice a, silt_slice b);
bool silt_slice_starts(silt_slice s, silt_slice prefix);
bool silt_slice_has_byte(silt_slice s, char byte);
/* Constant time for equal lengths. */
bool silt_slice_eq_secret(silt_slice a, silt_slice b);
/* Cuts the field before the next `byte` off `s`, and the byte with it; false if `s` is empty. Keeps
 * empty fields. */
bool silt_slice_split(silt_slice *s, char byte, silt_slice *ret_head);
silt_slice silt_slice_trim(silt_slice s); /* spaces and tabs */
/* Cuts the next byte or the next %XX off `s`, which is not empty, and returns the byte. -1: a
 * percent sign without two digits, which stays. */
int silt_slice_unescape(silt_slice *s);

/* Decimal digits only: no sign, no space, no leading zero except "0" itself. */
int silt_slice_to_u64(silt_slice s, uint64_t min, uint64_t max, uint64_t *ret,
                      struct silt_error *e);
/* Copies and terminates; refuses NUL bytes and texts that do not fit. */
int silt_slice_to_cstr(silt_slice s, char *out, size_t size, struct silt_error *e);
int silt_slice_to_path(silt_slice s, char out[PATH_MAX], struct silt_error *e);
bool silt_slice_is_utf8(silt_slice s);
