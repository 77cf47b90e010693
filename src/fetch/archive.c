/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/archive.h"

#include "base/log.h"
#include "base/own.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <sys/stat.h>

enum {
    BLOCK = 256 * 1024,   /* one read of the stream */
    END_OF_ARCHIVE = 1024 /* a tar ends with two blocks of zeros */
};

static const uint64_t GIB = 1024 * 1024 * 1024;

const struct silt_archive_limits silt_archive_defaults = {
    .bytes = 64 * GIB,
    .entries = 4000000,
    .stream = 80 * GIB, /* the files, and a header and padding for each */
};

/* Everything below runs in silt-fetch's cage, one stream per process. */
struct unpack {
    int in; /* borrowed */
    const struct silt_archive_limits *limits;
    struct silt_fetch_result *result;
    struct archive *reader, *disk;
    EVP_MD_CTX *digest;
    uint64_t stream; /* bytes read so far */
    uint64_t zeros;  /* of them at the very end */
    struct silt_error *e;
    char path[PATH_MAX]; /* of the entry at hand, without leading and doubled slashes */
    char block[BLOCK];
};

static void free_unpack(struct unpack **owned)
{
    struct unpack *u = *owned;
    if (!u)
        return;
    (void)archive_read_free(u->reader);
    (void)archive_write_free(u->disk);
    EVP_MD_CTX_free(u->digest);
    free(u);
}

/* "entry usr/bin/x: what libarchive says". Its numbers are errno or made up; only a full disk
 * matters. */
static int fail_entry(struct unpack *u, struct archive *a)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    const char *text = archive_error_string(a);
    bool full = archive_errno(a) == ENOSPC || archive_errno(a) == EDQUOT;
    return silt_fail(u->e, full ? SILT_NO_SPACE : SILT_INVALID, "entry %s: %s",
                     silt_log_quote(silt_slice_of(u->path), quoted), text ? text : "unreadable");
}

static int refuse_entry(struct unpack *u, const char *why)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    return silt_fail(u->e, SILT_INVALID, "entry %s: %s",
                     silt_log_quote(silt_slice_of(u->path), quoted), why);
}

static int fail_stream(struct unpack *u)
{
    const char *text = archive_error_string(u->reader);
    return silt_fail(u->e, SILT_INVALID, "read archive: %s", text ? text : "not a tar");
}

static void count_zeros(struct unpack *u, size_t n)
{
    size_t tail = n;
    while (tail > 0 && u->block[tail - 1] == 0)
        tail--;
    u->zeros = tail == 0 ? u->zeros + n : n - tail;
}

/* Fills the block. Returns its size, 0 at the end of the stream. */
static ssize_t read_block(struct unpack *u)
{
    ssize_t n;
    do {
        n = read(u->in, u->block, sizeof(u->block));
    } while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n;
    u->stream += (uint64_t)n;
    if (u->stream > u->limits->stream) {
        errno = EFBIG;
        return -1;
    }
    count_zeros(u, (size_t)n);
    if (EVP_DigestUpdate(u->digest, u->block, (size_t)n) != 1) {
        errno = ENOMEM;
        return -1;
    }
    return n;
}

static la_ssize_t on_read(struct archive *reader, void *user, const void **ret_block)
{
    struct unpack *u = user;
    ssize_t n = read_block(u);
    if (n < 0)
        archive_set_error(reader, errno, "stream: %s", strerror(errno));
    *ret_block = u->block;
    return n;
}

/* `./usr//bin/` becomes `usr/bin`, the root becomes empty. Answers what is wrong with it, or NULL.
 */
static const char *clean_path(const char *from, char out[PATH_MAX])
{
    silt_slice rest = silt_slice_of(from), part;
    size_t len = 0;
    out[0] = 0;
    if (rest.len == 0)
        return "it has no name";
    if (rest.data[0] == '/')
        return "its path is absolute";
    while (silt_slice_split(&rest, '/', &part)) {
        if (part.len == 0 || silt_slice_eq(part, SILT_LIT(".")))
            continue;
        if (silt_slice_eq(part, SILT_LIT("..")))
            return "its path climbs by `..`";
        if (part.len > NAME_MAX || len + part.len + 2 > PATH_MAX)
            return "its path is too long";
        if (len > 0)
            out[len++] = '/';
        memcpy(out + len, part.data, part.len);
        len += part.len;
        out[len] = 0;
    }
    return NULL;
}

static int take_path(struct unpack *u, struct archive_entry *entry)
{
    char target[PATH_MAX];
    const char *name = archive_entry_pathname(entry);
    (void)snprintf(u->path, sizeof(u->path), "%s", name ? name : "(unreadable name)");
    if (!name)
        return refuse_entry(u, "its name is not UTF-8");
    char cleaned[PATH_MAX];
    const char *wrong = clean_path(name, cleaned);
    if (wrong)
        return refuse_entry(u, wrong);
    memcpy(u->path, cleaned, sizeof(cleaned));
    archive_entry_copy_pathname(entry, u->path);

    const char *link = archive_entry_hardlink(entry);
    if (!link)
        return 0;
    wrong = clean_path(link, target);
    if (wrong || !target[0])
        return refuse_entry(u, "it is a hard link to a place outside");
    archive_entry_copy_hardlink(entry, target);
    return 0;
}

static int count_entry(struct unpack *u, struct archive_entry *entry)
{
    uint64_t size = archive_entry_size(entry) > 0 ? (uint64_t)archive_entry_size(entry) : 0;
    u->result->entries++;
    if (u->result->entries > u->limits->entries)
        return silt_fail(u->e, SILT_LIMIT, "more than %llu entries",
                         (unsigned long long)u->limits->entries);
    if (__builtin_add_overflow(u->result->bytes, size, &u->result->bytes)
        || u->result->bytes > u->limits->bytes)
        return silt_fail(u->e, SILT_LIMIT, "more than %llu bytes unpacked",
                         (unsigned long long)u->limits->bytes);
    return 0;
}

static bool is_wanted(struct archive_entry *entry)
{
    if (archive_entry_hardlink(entry))
        return true;
    mode_t type = archive_entry_filetype(entry);
    return type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK || type == AE_IFIFO;
}

static int write_data(struct unpack *u)
{
    const void *data;
    size_t size;
    la_int64_t offset;
    int got;
    while ((got = archive_read_data_block(u->reader, &data, &size, &offset)) == ARCHIVE_OK) {
        if (archive_write_data_block(u->disk, data, size, offset) < ARCHIVE_OK)
            return fail_entry(u, u->disk);
    }
    return got == ARCHIVE_EOF ? 0 : fail_entry(u, u->reader);
}

static int unpack_entry(struct unpack *u, struct archive_entry *entry)
{
    if (take_path(u, entry) < 0 || count_entry(u, entry) < 0)
        return -1;
    if (!u->path[0] || !is_wanted(entry))
        return 0; /* the next header skips its data */
    if (archive_entry_uid(entry) >= SILT_SLOT_IDS || archive_entry_gid(entry) >= SILT_SLOT_IDS
        || archive_entry_uid(entry) < 0 || archive_entry_gid(entry) < 0)
        return refuse_entry(u, "its owner is not a number from 0 to 65535");
    if (archive_write_header(u->disk, entry) != ARCHIVE_OK)
        return fail_entry(u, u->disk);
    if (archive_entry_size(entry) > 0 && write_data(u) < 0)
        return -1;
    if (archive_write_finish_entry(u->disk) != ARCHIVE_OK)
        return fail_entry(u, u->disk);
    return 0;
}

static int unpack_entries(struct unpack *u)
{
    struct archive_entry *entry;
    int got;
    while ((got = archive_read_next_header(u->reader, &entry)) == ARCHIVE_OK
           || got == ARCHIVE_WARN) {
        if (unpack_entry(u, entry) < 0)
            return -1;
    }
    if (got != ARCHIVE_EOF)
        return fail_stream(u);
    if (archive_write_close(u->disk) != ARCHIVE_OK) /* sets times and modes of folders */
        return fail_entry(u, u->disk);
    return 0;
}

/* The digest is of the whole stream, so what follows the archive is read too. A plain tar that was
 * cut between two entries looks complete but for its end mark; gzip and zstd notice by themselves.
 */
static int finish(struct unpack *u)
{
    ssize_t n;
    unsigned size = 0;
    while ((n = read_block(u)) > 0)
        continue;
    if (n < 0)
        return silt_fail_errno(u->e, "read archive");
    if (archive_filter_code(u->reader, 0) == ARCHIVE_FILTER_NONE && u->zeros < END_OF_ARCHIVE)
        return silt_fail(u->e, SILT_INVALID, "read archive: it was cut off before its end");
    if (u->result->entries == 0)
        return silt_fail(u->e, SILT_INVALID, "read archive: it is empty");
    if (EVP_DigestFinal_ex(u->digest, u->result->digest, &size) != 1 || size != SILT_DIGEST_SIZE)
        return silt_fail(u->e, SILT_INTERNAL, "finish the sha256");
    return 0;
}

static int open_reader(struct unpack *u)
{
    u->reader = archive_read_new();
    if (!u->reader || archive_read_support_filter_gzip(u->reader) != ARCHIVE_OK
        || archive_read_support_filter_zstd(u->reader) != ARCHIVE_OK
        || archive_read_support_format_tar(u->reader) != ARCHIVE_OK)
        return silt_fail(u->e, SILT_UNAVAILABLE, "libarchive without tar, gzip or zstd");
    if (archive_read_open(u->reader, u, NULL, on_read, NULL) != ARCHIVE_OK)
        return fail_stream(u);
    return 0;
}

static int open_disk(struct unpack *u)
{
    /* No UNLINK: with it libarchive removes a link in the way instead of refusing the entry. */
    int flags = ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME
                | ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT
                | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS;
    u->disk = archive_write_disk_new();
    if (!u->disk || archive_write_disk_set_options(u->disk, flags) != ARCHIVE_OK)
        return silt_fail(u->e, SILT_INTERNAL, "libarchive: open the output folder");
    return 0;
}

static int open_digest(struct unpack *u)
{
    u->digest = EVP_MD_CTX_new();
    if (!u->digest || EVP_DigestInit_ex(u->digest, EVP_sha256(), NULL) != 1)
        return silt_fail(u->e, SILT_UNAVAILABLE, "libcrypto without sha256");
    return 0;
}

int silt_archive_unpack(int in, const struct silt_archive_limits *limits,
                        struct silt_fetch_result *ret, struct silt_error *e)
{
    __attribute__((cleanup(free_unpack))) struct unpack *u = calloc(1, sizeof(*u));
    if (!u)
        return silt_fail(e, SILT_LIMIT, "no memory");
    u->in = in;
    u->limits = limits;
    u->result = ret;
    u->e = e;
    (void)umask(022);
    if (open_digest(u) < 0 || open_reader(u) < 0 || open_disk(u) < 0)
        return -1;
    if (unpack_entries(u) < 0)
        return -1;
    return finish(u);
}
