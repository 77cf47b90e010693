/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST = 512 };

void silt_buf_init(struct silt_buf *b, size_t max)
{
    *b = (struct silt_buf){.max = max};
}

void silt_buf_fini(struct silt_buf *b)
{
    free(b->data);
    silt_buf_init(b, b->max);
}

void silt_buf_clear(struct silt_buf *b)
{
    b->len = 0;
    b->broken = false;
}

static bool grow(struct silt_buf *b, size_t need)
{
    size_t cap = b->cap > 0 ? b->cap : FIRST;
    while (cap < need)
        cap *= 2;
    if (cap > b->max)
        cap = b->max;
    char *data = realloc(b->data, cap);
    if (data == NULL)
        return false;
    b->data = data;
    b->cap = cap;
    return true;
}

char *silt_buf_room(struct silt_buf *b, size_t n)
{
    size_t need;
    if (b->broken)
        return NULL;
    if (__builtin_add_overflow(b->len, n, &need) || need > b->max
        || (need > b->cap && !grow(b, need))) {
        b->broken = true;
        return NULL;
    }
    return b->data + b->len;
}

void silt_buf_add(struct silt_buf *b, silt_slice bytes)
{
    if (bytes.len == 0)
        return;
    char *at = silt_buf_room(b, bytes.len);
    if (at == NULL)
        return;
    memcpy(at, bytes.data, bytes.len);
    b->len += bytes.len;
}

void silt_buf_add_byte(struct silt_buf *b, char byte)
{
    silt_buf_add(b, (silt_slice){&byte, 1});
}

void silt_buf_addf(struct silt_buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(n >= 0);
    char *at = silt_buf_room(b, (size_t)n + 1);
    if (at == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(at, (size_t)n + 1, format, args);
    va_end(args);
    b->len += (size_t)n;
}

void silt_buf_drop(struct silt_buf *b, size_t n)
{
    assert(n <= b->len);
    b->len -= n;
    if (b->len > 0)
        memmove(b->data, b->data + n, b->len);
}
