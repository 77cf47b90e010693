/* SPDX-License-Identifier: Apache-2.0 */
/* share: memory that one process writes and another one, which it does not trust, only reads. The reader's
 * descriptor can neither be written, resized nor opened again for that, and the writer can take the pages back
 * whatever the reader holds. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

struct silt_share {
    int fd, reader; /* owned; the second is what the other one may get */
    char *bytes;    /* NULL: there is none */
    size_t size;
};

int silt_share_open(struct silt_share *s, size_t size, struct silt_error *e);
/* The pages are gone for both; one that was never opened is fine if it is all zero. */
void silt_share_close(struct silt_share *s);

/* The reader's side: all of it, until silt_share_forget; fd is not needed afterwards. */
int silt_share_look(int fd, silt_slice *ret, struct silt_error *e);
void silt_share_forget(silt_slice *bytes);
