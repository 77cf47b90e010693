/* SPDX-License-Identifier: Apache-2.0 */
/* stream: reads a tar, plain or compressed with gzip, zstd or xz: counts and hashes its bytes and
 * returns its entries. */
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
    /* Like read(2); sets `why` on -1. */
    ssize_t (*read)(struct silt_source *s, char *block, size_t size);
    const char *why;
    bool limit; /* a limit caused the error */
};

struct silt_source_fd {
    struct silt_source source;
    int fd; /* borrowed */
};
struct silt_source *silt_source_fd(struct silt_source_fd *s, int fd);

struct silt_stream {
    struct silt_source *source;               /* borrowed */
    bool packed;                              /* it may be compressed */
    const struct silt_archive_limits *limits; /* borrowed */
    struct archive *reader;
    EVP_MD_CTX *digest;
    uint64_t bytes; /* read so far */
    uint64_t zeros; /* trailing zero bytes among them */
    char *block;
};

/* `packed`: it may be compressed; if false, the caller checks the digest. */
int silt_stream_open(struct silt_stream *s, struct silt_source *source, bool packed,
                     const struct silt_archive_limits *limits, struct silt_error *e);
int silt_stream_check_filters(struct archive *reader, struct silt_error *e);
void silt_stream_close(struct silt_stream *s); /* fine if zeroed */
/* *ret is NULL at the end of the archive. */
int silt_stream_next(struct silt_stream *s, struct archive_entry **ret, struct silt_error *e);
/* The next bytes of the current entry and their offset. At its end *ret_bytes is empty, with data
 * NULL. */
int silt_stream_data(struct silt_stream *s, silt_slice *ret_bytes, int64_t *ret_offset,
                     struct silt_error *e);
/* Reads what follows the archive. The digest covers every byte. */
int silt_stream_finish(struct silt_stream *s, uint8_t ret[SILT_DIGEST_SIZE], struct silt_error *e);
