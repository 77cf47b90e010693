/* SPDX-License-Identifier: Apache-2.0 */
/* buf: a growing byte buffer with a ceiling set by silt_buf_init. An append past the ceiling sets
 * `broken` and later appends do nothing, so the writer checks once, at the end. Memory is allocated
 * on first use and doubles. */
#pragma once

#include "base/slice.h"

#include <stdarg.h>

struct silt_buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
    bool broken;
};

void silt_buf_init(struct silt_buf *b, size_t max);
void silt_buf_fini(struct silt_buf *b);  /* the buf can be used again, with the same ceiling */
void silt_buf_clear(struct silt_buf *b); /* empties it and resets `broken`; keeps the memory */

/* Reserves n bytes for the caller to write, who then adds to len. NULL if the buf is broken. */
char *silt_buf_room(struct silt_buf *b, size_t n);
void silt_buf_add(struct silt_buf *b, silt_slice bytes);
void silt_buf_add_byte(struct silt_buf *b, char byte);
void silt_buf_addf(struct silt_buf *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void silt_buf_drop(struct silt_buf *b, size_t n); /* the first n bytes, n <= len */

static inline silt_slice silt_buf_slice(const struct silt_buf *b)
{
    return (silt_slice){b->data, b->len};
}

#define silt_auto_buf __attribute__((cleanup(silt_buf_fini))) struct silt_buf
