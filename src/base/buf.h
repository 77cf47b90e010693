/* SPDX-License-Identifier: Apache-2.0 */
/* buf: bytes we build, with a ceiling given at birth. Past it the buf is `broken`, further appends do
 * nothing, and the writer looks once, at the end. Memory comes on first use and doubles. */
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
void silt_buf_fini(struct silt_buf *b); /* usable again after it, same ceiling */
void silt_buf_clear(struct silt_buf *b); /* empties, keeps memory, forgets `broken` */

/* Room for n more bytes, to be written by the caller, who then adds to len; NULL when broken. */
char *silt_buf_room(struct silt_buf *b, size_t n);
void silt_buf_add(struct silt_buf *b, silt_slice bytes);
void silt_buf_add_byte(struct silt_buf *b, char byte);
void silt_buf_addf(struct silt_buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void silt_buf_drop(struct silt_buf *b, size_t n); /* the first n bytes, n <= len */

static inline silt_slice silt_buf_slice(const struct silt_buf *b)
{
    return (silt_slice){b->data, b->len};
}

#define silt_auto_buf __attribute__((cleanup(silt_buf_fini))) struct silt_buf
