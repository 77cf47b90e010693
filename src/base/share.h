/* SPDX-License-Identifier: Apache-2.0 */
/* share: memory that one process writes and an untrusted process only reads. The reader's
 * descriptor cannot be written, resized or reopened for writing, and the writer can free the pages
 * at any time. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

struct silt_share {
    int fd, reader; /* owned; `reader` is the descriptor for the other process */
    char *bytes;    /* NULL: not open */
    size_t size;
};

int silt_share_open(struct silt_share *s, size_t size, struct silt_error *e);
/* Frees the pages for both sides. A zeroed struct that was never opened is allowed. */
void silt_share_close(struct silt_share *s);

/* Reader: maps all of it until silt_share_forget; fd may be closed afterwards. */
int silt_share_look(int fd, silt_slice *ret, struct silt_error *e);
void silt_share_forget(silt_slice *bytes);
