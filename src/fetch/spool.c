/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/spool.h"

#include "base/digest.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"
#include "fetch/hash.h"
#include "fetch/entry_path.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>

enum { NAMES_MAX = 4 << 20 };

int silt_spool_open(struct silt_spool *s, struct silt_error *e)
{
    *s = (struct silt_spool){.fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
    silt_arena_init(&s->arena, NAMES_MAX);
    if (s->fd < 0)
        return silt_fail_errno(e, "make a spool");
    s->items = calloc(SILT_SPOOL_FILES_MAX, sizeof(*s->items));
    if (!s->items)
        return silt_fail(e, SILT_LIMIT, "no memory");
    return 0;
}

void silt_spool_close(struct silt_spool *s)
{
    silt_close_fd(&s->fd);
    free(s->items);
    s->items = NULL;
    silt_arena_fini(&s->arena);
}

static int refuse(const char *name, const char *why, struct silt_error *e)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    return silt_fail(e, SILT_INVALID, "file %s of the archive: %s",
                     silt_log_quote(silt_slice_of(name), quoted), why);
}

static const struct silt_spooled *find(const struct silt_spool *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->items[i].name, name) == 0)
            return &s->items[i];
    return NULL;
}

/* One step is enough: links to links do not occur. */
const struct silt_spooled *silt_spool_find(const struct silt_spool *s, const char *name)
{
    const struct silt_spooled *file = find(s, name);
    if (file && file->link)
        file = find(s, file->link);
    return file && !file->link ? file : NULL;
}

static int new_file(struct silt_spool *s, const char *name, struct silt_spooled **ret,
                    struct silt_error *e)
{
    char clean[PATH_MAX];
    const char *wrong = silt_entry_path_clean(name, clean);
    if (wrong)
        return refuse(name, wrong, e);
    if (!clean[0] || strlen(clean) > SILT_SPOOL_NAME_MAX)
        return refuse(name, "no such name belongs into an archive of an image", e);
    if (find(s, clean))
        return refuse(name, "it is there twice", e);
    if (s->count == SILT_SPOOL_FILES_MAX)
        return silt_fail(e, SILT_LIMIT, "more than %d files in the archive", SILT_SPOOL_FILES_MAX);
    char *copy = silt_arena_dup(&s->arena, silt_slice_of(clean));
    if (!copy)
        return silt_fail(e, SILT_LIMIT, "no memory");
    s->items[s->count] = (struct silt_spooled){.name = copy, .at = s->size};
    *ret = &s->items[s->count++];
    return 0;
}

/* Targets of symbolic links are relative to the link's directory and may climb up to the archive's
 * root: `../<hex>.tar`. */
static int add_link(struct silt_spool *s, struct silt_spooled *file, const char *target,
                    bool symbolic, struct silt_error *e)
{
    char place[PATH_MAX], clean[PATH_MAX];
    const char *slash = strrchr(file->name, '/');
    int directory = slash && symbolic ? (int)(slash - file->name) : 0;
    while (directory > 0 && strncmp(target, "../", 3) == 0) {
        target += 3;
        while (directory > 0 && file->name[--directory] != '/')
            continue;
    }
    int n = snprintf(place, sizeof(place), "%.*s/%s", directory, file->name, target);
    const char *from = directory > 0 ? place : place + 1;
    if (n < 0 || n >= (int)sizeof(place) || silt_entry_path_clean(from, clean))
        return refuse(file->name, "it is a link to a place outside", e);
    file->link = silt_arena_dup(&s->arena, silt_slice_of(clean));
    return file->link ? 0 : silt_fail(e, SILT_LIMIT, "no memory");
}

static int copy(struct silt_spool *s, struct silt_spooled *file, struct silt_stream *from,
                EVP_MD_CTX *hash, struct silt_error *e)
{
    silt_slice bytes;
    int64_t offset;
    for (;;) {
        if (silt_stream_data(from, &bytes, &offset, e) < 0)
            return -1;
        if (!bytes.data)
            return 0;
        if (offset < 0 || (uint64_t)offset != file->size)
            return refuse(file->name, "it has holes", e);
        if (bytes.len > from->limits->bytes - s->size)
            return silt_fail(e, SILT_LIMIT, "more than %llu bytes in the archive",
                             (unsigned long long)from->limits->bytes);
        if (silt_limits_check_room(from->limits, s->fd, e) < 0)
            return -1;
        if (silt_hash_add(hash, bytes, e) < 0 || silt_fd_write_all(s->fd, bytes, e) < 0)
            return -1;
        file->size += bytes.len;
        s->size += bytes.len;
    }
}

static int check_name(const struct silt_spooled *file, struct silt_error *e)
{
    static const char blobs[] = "blobs/sha256/";
    uint8_t digest[SILT_DIGEST_SIZE];
    if (strncmp(file->name, blobs, sizeof(blobs) - 1) != 0)
        return 0;
    if (!silt_digest_parse(silt_slice_of(file->name + sizeof(blobs) - 1), digest))
        return refuse(file->name, "its name is no sha256", e);
    if (memcmp(digest, file->digest, sizeof(digest)) != 0)
        return refuse(file->name, "its content has another sha256", e);
    return 0;
}

static int add_file(struct silt_spool *s, struct silt_spooled *file, struct silt_stream *from,
                    struct archive_entry *entry, struct silt_error *e)
{
    EVP_MD_CTX *hash = silt_hash_new();
    if (!hash)
        return silt_fail(e, SILT_LIMIT, "no memory");
    int got = copy(s, file, from, hash, e);
    if (got == 0)
        got = silt_hash_end(hash, file->digest, e);
    EVP_MD_CTX_free(hash);
    if (got < 0)
        return -1;
    if (archive_entry_size(entry) < 0 || (uint64_t)archive_entry_size(entry) != file->size)
        return refuse(file->name, "it is not as large as it says", e);
    return check_name(file, e);
}

int silt_spool_add(struct silt_spool *s, struct silt_stream *from, struct archive_entry *entry,
                   struct silt_error *e)
{
    struct silt_spooled *file;
    const char *name = archive_entry_pathname(entry), *hard = archive_entry_hardlink(entry);
    const char *target = archive_entry_symlink(entry);
    bool link = hard || archive_entry_filetype(entry) == AE_IFLNK;
    if (!link && archive_entry_filetype(entry) != AE_IFREG)
        return 0;
    if (new_file(s, name ? name : "", &file, e) < 0)
        return -1;
    if (link)
        return add_link(s, file, hard ? hard : target ? target : "", !hard, e);
    return add_file(s, file, from, entry, e);
}

int silt_spool_read(const struct silt_spool *s, const struct silt_spooled *file, size_t max,
                    struct silt_buf *ret, struct silt_error *e)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    if (file->size > max)
        return silt_fail(e, SILT_LIMIT, "file %s of the archive has more than %zu bytes",
                         silt_log_quote(silt_slice_of(file->name), quoted), max);
    silt_buf_clear(ret);
    char *room = silt_buf_room(ret, (size_t)file->size + 1);
    if (!room)
        return silt_fail(e, SILT_LIMIT, "no memory");
    while (ret->len < file->size) {
        ssize_t n = pread(s->fd, ret->data + ret->len, (size_t)file->size - ret->len,
                          (off_t)(file->at + ret->len));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return silt_fail_read(e, n, "read the spool");
        ret->len += (size_t)n;
    }
    return 0;
}
