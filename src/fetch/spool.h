/* SPDX-License-Identifier: Apache-2.0 */
/* spool: the files in an archive of an image, in the order they came, in one nameless file: what says
 * how they belong together may come last. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "fetch/stream.h"

enum { SILT_SPOOL_FILES_MAX = 4096, SILT_SPOOL_NAME_MAX = 255 };

struct silt_spooled {
    const char *name;
    const char *link; /* the name of another file that it is; NULL: its own */
    uint64_t at, size;
    uint8_t digest[SILT_DIGEST_SIZE];
};

struct silt_spool {
    int fd;
    uint64_t size;
    struct silt_spooled *items;
    size_t count;
    struct silt_arena arena; /* of names */
};

int silt_spool_open(struct silt_spool *s, struct silt_error *e);
void silt_spool_close(struct silt_spool *s);
/* Folders and whatever else is no file and no link adds nothing. A blob that is not what its name says
 * is refused. */
int silt_spool_add(struct silt_spool *s, struct silt_stream *from, struct archive_entry *entry,
                   struct silt_error *e);
/* NULL: it is not there. */
const struct silt_spooled *silt_spool_find(const struct silt_spool *s, const char *name);
/* All of it, at most `max` bytes. */
int silt_spool_read(const struct silt_spool *s, const struct silt_spooled *file, size_t max,
                    struct silt_buf *ret, struct silt_error *e);
