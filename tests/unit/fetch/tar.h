/* SPDX-License-Identifier: Apache-2.0 */
/* tar: writes tars that no honest program would, header by header. */
#pragma once

#include "base/buf.h"

#include <sys/stat.h>

enum { TAR_BLOCK = 512, TAR_MAX = 8 * 1024 * 1024 };

struct tar_entry {
    const char *name;
    char type; /* '0' file, '1' hard link, '2' symbolic link, '3' device, '5' directory, '6' fifo */
    const char *link;
    const char *data;
    unsigned mode, uid, gid;
    unsigned long long size; /* 0: that of data */
};

static inline void tar_number(char *field, size_t width, unsigned long long value)
{
    for (size_t i = width - 1; i-- > 0; value /= 8)
        field[i] = (char)('0' + value % 8);
}

static inline void tar_pad(struct silt_buf *b)
{
    while (b->len % TAR_BLOCK)
        silt_buf_add_byte(b, 0);
}

static inline void tar_header(struct silt_buf *b, const struct tar_entry *t)
{
    char h[TAR_BLOCK] = {0};
    size_t len = t->data ? strlen(t->data) : 0;
    memcpy(h, t->name, strnlen(t->name, 100));
    tar_number(h + 100, 8, t->mode ? t->mode : 0644);
    tar_number(h + 108, 8, t->uid);
    tar_number(h + 116, 8, t->gid);
    tar_number(h + 124, 12, t->size ? t->size : len);
    tar_number(h + 136, 12, 1000000000);
    h[156] = t->type;
    if (t->link)
        memcpy(h + 157, t->link, strnlen(t->link, 100));
    memcpy(h + 257, "ustar\00000", 8);
    if (t->type == '3')
        tar_number(h + 329, 8, 1), tar_number(h + 337, 8, 3);
    memset(h + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    tar_number(h + 148, 7, sum);
    h[154] = 0;
    silt_buf_add(b, (silt_slice){h, sizeof(h)});
}

static inline void tar_add(struct silt_buf *b, struct tar_entry t)
{
    tar_header(b, &t);
    if (t.data)
        silt_buf_add(b, silt_slice_of(t.data));
    tar_pad(b);
}

static inline void tar_end(struct silt_buf *b)
{
    static const char zeros[2 * TAR_BLOCK];
    silt_buf_add(b, (silt_slice){zeros, sizeof(zeros)});
}
