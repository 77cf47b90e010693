/* SPDX-License-Identifier: Apache-2.0 */
/* stream: a tar that comes from somewhere, plain or packed by gzip, zstd or xz: counted, hashed and
 * given away entry by entry. */
#pragma once

#include "base/slice.h"
#include "fetch/limits.h"
#include "wire/priv.h"

#include <openssl/types.h>
#include <sys/types.h>

enum { SILT_STREAM_BLOCK = 256 * 1024 /* one read */ };

struct archive;
struct archive_entry;

struct silt_source {
    /* As read(2) does; after -1 `why` is told. */
    ssize_t (*read)(struct silt_source *s, char *block, size_t size);
    const char *why;
    bool limit; /* a limit is why */
};

struct silt_source_fd {
    struct silt_source source;
    int fd; /* borrowed */
};
struct silt_source *silt_source_fd(struct silt_source_fd *s, int fd);

struct silt_stream {
    struct silt_source *source; /* borrowed */
    bool packed;                /* or it may be */
    const struct silt_archive_limits *limits; /* borrowed */
    struct archive *reader;
    EVP_MD_CTX *digest;
    uint64_t bytes; /* read so far */
    uint64_t zeros; /* of them at the very end */
    char *block;
};

/* `packed`: it may be; if not, whoever reads knows its digest. */
int silt_stream_open(struct silt_stream *s, struct silt_source *source, bool packed,
                     const struct silt_archive_limits *limits, struct silt_error *e);
int silt_stream_check_filters(struct archive *reader, struct silt_error *e);
void silt_stream_close(struct silt_stream *s); /* fine when all is zero */
/* NULL: the archive is over. */
int silt_stream_next(struct silt_stream *s, struct archive_entry **ret, struct silt_error *e);
/* The next bytes of the entry at hand, and where they belong. *ret_bytes is empty, data NULL, at its
 * end. */
int silt_stream_data(struct silt_stream *s, silt_slice *ret_bytes, int64_t *ret_offset,
                     struct silt_error *e);
/* Reads what follows the archive. The digest is of every byte. */
int silt_stream_finish(struct silt_stream *s, uint8_t ret[SILT_DIGEST_SIZE], struct silt_error *e);
