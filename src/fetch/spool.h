/* SPDX-License-Identifier: Apache-2.0 */
/* spool: stores the files of an image archive, in order, in one unnamed file: the manifest that
 * relates them may come last. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "fetch/stream.h"

enum { SILT_SPOOL_FILES_MAX = 4096, SILT_SPOOL_NAME_MAX = 255 };

struct silt_spooled {
    const char *name;
    const char *link; /* if it is a link: the other file's name; else NULL */
    uint64_t at, size;
    uint8_t digest[SILT_DIGEST_SIZE];
};

struct silt_spool {
    int fd;
    uint64_t size;
    struct silt_spooled *items;
    size_t count;
    struct silt_arena arena; /* holds the names */
};

int silt_spool_open(struct silt_spool *s, struct silt_error *e);
void silt_spool_close(struct silt_spool *s);
/* Ignores directories and everything else that is neither a file nor a link. Refuses a blob whose
 * digest does not match its name. */
int silt_spool_add(struct silt_spool *s, struct silt_stream *from, struct archive_entry *entry,
                   struct silt_error *e);
/* NULL: no such file. */
const struct silt_spooled *silt_spool_find(const struct silt_spool *s, const char *name);
/* Reads the whole file, at most `max` bytes. */
int silt_spool_read(const struct silt_spool *s, const struct silt_spooled *file, size_t max,
                    struct silt_buf *ret, struct silt_error *e);
