/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/stream.h"

#include "base/own.h"
#include "fetch/hash.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <openssl/evp.h>

enum { END_OF_ARCHIVE = 1024 /* a tar ends with two blocks of zeros */ };

static const uint64_t GIB = 1024 * 1024 * 1024;

const struct silt_archive_limits silt_archive_defaults = {
    .bytes = 64 * GIB,
    .entries = 4000000,
    .stream = 80 * GIB, /* the files, plus a header and padding for each */
    .ratio = 250,       /* gzip can expand a byte to 1,032, zstd to tens of thousands */
    .free = GIB / 4,
    .spare = 2 * GIB,
    .spare_part = 20,
};

static int fail_stream(struct silt_stream *s, struct silt_error *e)
{
    const char *text = s->source->why; /* libarchive's own message may be a different one by now */
    if (!text)
        text = archive_error_string(s->reader);
    return silt_fail(e, s->source->limit ? SILT_LIMIT : SILT_INVALID, "read archive: %s",
                     text ? text : "not a tar");
}

static bool is_bomb(const struct silt_stream *s)
{
    la_int64_t unpacked = archive_filter_bytes(s->reader, 0);
    if (unpacked <= 0 || (uint64_t)unpacked <= s->limits->free
        || (uint64_t)unpacked / s->limits->ratio <= s->bytes)
        return false;
    s->source->why = "it unpacks to far more than its size";
    s->source->limit = true;
    return true;
}

static void count_zeros(struct silt_stream *s, size_t n)
{
    size_t tail = n;
    while (tail > 0 && s->block[tail - 1] == 0)
        tail--;
    s->zeros = tail == 0 ? s->zeros + n : n - tail;
}

static ssize_t read_fd(struct silt_source *source, char *block, size_t size)
{
    struct silt_source_fd *s = silt_outer(source, struct silt_source_fd, source);
    ssize_t n;
    do {
        n = read(s->fd, block, size);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        source->why = strerror(errno);
    return n;
}

struct silt_source *silt_source_fd(struct silt_source_fd *s, int fd)
{
    *s = (struct silt_source_fd){.source = {.read = read_fd}, .fd = fd};
    return &s->source;
}

/* Fills the block. Returns its size, 0 at the end of the stream. */
static ssize_t read_block(struct silt_stream *s)
{
    ssize_t n = s->source->read(s->source, s->block, SILT_STREAM_BLOCK);
    if (n <= 0)
        return n;
    s->bytes += (uint64_t)n;
    if (s->bytes > s->limits->stream) {
        s->source->why = "it is too large";
        s->source->limit = true;
        return -1;
    }
    count_zeros(s, (size_t)n);
    if (EVP_DigestUpdate(s->digest, s->block, (size_t)n) != 1) {
        s->source->why = "no memory";
        return -1;
    }
    return n;
}

static la_ssize_t on_read(struct archive *reader, void *user, const void **ret_block)
{
    struct silt_stream *s = user;
    ssize_t n = is_bomb(s) ? -1 : read_block(s);
    if (n < 0)
        archive_set_error(reader, EIO, "%s", s->source->why);
    *ret_block = s->block;
    return n;
}

static bool support(struct archive *reader, bool packed)
{
    if (packed
        && (archive_read_support_filter_gzip(reader) != ARCHIVE_OK
            || archive_read_support_filter_zstd(reader) != ARCHIVE_OK
            || archive_read_support_filter_xz(reader) != ARCHIVE_OK))
        return false;
    return archive_read_support_format_tar(reader) == ARCHIVE_OK;
}

/* With several filters the ratio check would see only the last one, and the others could expand
 * without limit. */
int silt_stream_check_filters(struct archive *reader, struct silt_error *e)
{
    if (archive_filter_count(reader) > 2) /* one filter, and the source */
        return silt_fail(e, SILT_INVALID, "read archive: it is packed more than once");
    return 0;
}

int silt_stream_open(struct silt_stream *s, struct silt_source *source, bool packed,
                     const struct silt_archive_limits *limits, struct silt_error *e)
{
    *s = (struct silt_stream){
        .source = source, .packed = packed, .limits = limits, .block = malloc(SILT_STREAM_BLOCK)};
    s->digest = silt_hash_new();
    s->reader = archive_read_new();
    if (!s->block || !s->digest || !s->reader)
        return silt_fail(e, SILT_LIMIT, "no memory");
    if (!support(s->reader, packed))
        return silt_fail(e, SILT_UNAVAILABLE, "libarchive without tar, gzip, zstd or xz");
    if (archive_read_open(s->reader, s, NULL, on_read, NULL) != ARCHIVE_OK)
        return fail_stream(s, e);
    return silt_stream_check_filters(s->reader, e);
}

void silt_stream_close(struct silt_stream *s)
{
    (void)archive_read_free(s->reader);
    EVP_MD_CTX_free(s->digest);
    free(s->block);
    *s = (struct silt_stream){.source = NULL};
}

int silt_stream_next(struct silt_stream *s, struct archive_entry **ret, struct silt_error *e)
{
    int got = archive_read_next_header(s->reader, ret);
    if (got == ARCHIVE_EOF)
        *ret = NULL;
    else if (got != ARCHIVE_OK && got != ARCHIVE_WARN)
        return fail_stream(s, e);
    return 0;
}

int silt_stream_data(struct silt_stream *s, silt_slice *ret_bytes, int64_t *ret_offset,
                     struct silt_error *e)
{
    const void *data;
    size_t size;
    la_int64_t offset;
    int got = archive_read_data_block(s->reader, &data, &size, &offset);
    *ret_bytes = (silt_slice){NULL, 0};
    if (got == ARCHIVE_EOF)
        return 0;
    if (got != ARCHIVE_OK)
        return fail_stream(s, e);
    if (is_bomb(s))
        return fail_stream(s, e);
    *ret_bytes = (silt_slice){data ? data : "", size};
    *ret_offset = offset;
    return 0;
}

/* A plain tar cut between two entries looks complete except for its end mark; compressed ones
 * detect it themselves, and a layer by its digest. */
int silt_stream_finish(struct silt_stream *s, uint8_t ret[SILT_DIGEST_SIZE], struct silt_error *e)
{
    ssize_t n;
    while ((n = read_block(s)) > 0)
        continue;
    if (n < 0)
        return silt_fail(e, s->source->limit ? SILT_LIMIT : SILT_INVALID, "read archive: %s",
                         s->source->why);
    if (s->packed && archive_filter_code(s->reader, 0) == ARCHIVE_FILTER_NONE
        && s->zeros < END_OF_ARCHIVE)
        return silt_fail(e, SILT_INVALID, "read archive: it was cut off before its end");
    return silt_hash_end(s->digest, ret, e);
}
