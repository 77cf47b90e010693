/* SPDX-License-Identifier: Apache-2.0 */
/* layer: read twice. First its content is hashed and its whiteouts are applied, which can only
 * affect files of lower layers; then its files are written. */
#include "fetch/layer.h"

#include "base/log.h"
#include "base/own.h"
#include "fetch/disk.h"
#include "fetch/entry_path.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of the spool, decompressed: the source of a stream. */
struct unpacked {
    struct silt_source source;
    const struct silt_layer *layer; /* borrowed */
    const struct silt_archive_limits *limits;
    struct archive *raw;
    uint64_t at;  /* compressed bytes read */
    uint64_t out; /* decompressed bytes */
    char block[SILT_STREAM_BLOCK];
};

static la_ssize_t on_raw(struct archive *raw, void *user, const void **ret_block)
{
    struct unpacked *u = user;
    const struct silt_spooled *file = u->layer->file;
    uint64_t left = file->size - u->at;
    size_t want = left < sizeof(u->block) ? (size_t)left : sizeof(u->block);
    ssize_t n;
    do {
        n = pread(u->layer->spool->fd, u->block, want, (off_t)(file->at + u->at));
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        archive_set_error(raw, errno, "read the spool");
    else
        u->at += (uint64_t)n;
    *ret_block = u->block;
    return n;
}

static bool is_bomb(const struct unpacked *u)
{
    return u->out > u->limits->free && u->out / u->limits->ratio > u->layer->file->size;
}

static ssize_t read_unpacked(struct silt_source *source, char *block, size_t size)
{
    struct unpacked *u = silt_outer(source, struct unpacked, source);
    la_ssize_t n = archive_read_data(u->raw, block, size);
    if (n < 0) {
        const char *why = archive_error_string(u->raw);
        source->why = why ? why : "unreadable";
        return -1;
    }
    u->out += (uint64_t)n;
    if (is_bomb(u)) {
        source->why = "it unpacks to far more than its size";
        source->limit = true;
        return -1;
    }
    return n;
}

static int open_raw(struct unpacked *u, struct silt_error *e)
{
    struct archive_entry *entry;
    u->raw = archive_read_new();
    if (!u->raw || archive_read_support_filter_gzip(u->raw) != ARCHIVE_OK
        || archive_read_support_filter_zstd(u->raw) != ARCHIVE_OK
        || archive_read_support_filter_xz(u->raw) != ARCHIVE_OK
        || archive_read_support_format_raw(u->raw) != ARCHIVE_OK
        || archive_read_support_format_empty(u->raw) != ARCHIVE_OK)
        return silt_fail(e, SILT_UNAVAILABLE, "libarchive without gzip, zstd or xz");
    if (archive_read_open(u->raw, u, NULL, on_raw, NULL) == ARCHIVE_OK
        && archive_read_next_header(u->raw, &entry) == ARCHIVE_OK)
        return silt_stream_check_filters(u->raw, e);
    const char *why = archive_error_string(u->raw);
    return silt_fail(e, SILT_INVALID, "%s", why ? why : "it is empty");
}

/* ---- whiteouts ---- */

static const silt_slice mark = SILT_LIT(".wh.");

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The first component of a path that is a whiteout, or NULL. */
static const char *whiteout_in(const char *path)
{
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, mark.data, mark.len) == 0)
            return part;
    }
    return NULL;
}

static bool is_note(const char *part) /* of aufs */
{
    return strncmp(part + mark.len, mark.data, mark.len) == 0;
}

static int refuse(const char *name, const char *why, struct silt_error *e)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    return silt_fail(e, SILT_INVALID, "entry %s: %s", silt_log_quote(silt_slice_of(name), quoted),
                     why);
}

/* `place` is the whiteout's own path, links resolved. */
static int take_away(char place[PATH_MAX], struct silt_error *e)
{
    char *last = place + (last_part(place) - place);
    char *name = last + mark.len;
    if (strcmp(name, ".wh..opq") == 0) {
        *(last > place ? last - 1 : last) = 0;
        return silt_entry_path_empty(place, e);
    }
    if (is_note(last))
        return 0;
    if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return refuse(place, "it removes nothing that has a name", e);
    memmove(last, name, strlen(name) + 1);
    return silt_entry_path_remove(place, e);
}

/* A directory of this layer replaces a link: whiteouts in it refer to the directory, not to the
 * link's target. */
static void drop_link(const char *clean)
{
    char place[PATH_MAX];
    struct stat st;
    if (clean[0] && !silt_entry_path_follow(clean, place) && lstat(place, &st) == 0
        && S_ISLNK(st.st_mode))
        (void)unlink(place);
}

static int look_at(const char *name, bool directory, struct silt_error *e)
{
    char clean[PATH_MAX], place[PATH_MAX];
    const char *wrong = name ? silt_entry_path_clean(name, clean) : "its name is not UTF-8";
    if (wrong)
        return refuse(name ? name : "", wrong, e);
    const char *whiteout = whiteout_in(clean);
    if (!whiteout && directory)
        drop_link(clean);
    if (!whiteout || (is_note(whiteout) && strchr(whiteout, '/')))
        return 0;
    if (strchr(whiteout, '/'))
        return refuse(clean, "it lies in a whiteout", e);
    wrong = silt_entry_path_follow(clean, place);
    return wrong ? refuse(clean, wrong, e) : take_away(place, e);
}

static int survey(struct silt_stream *s, const struct silt_layer *l, struct silt_error *e)
{
    struct archive_entry *entry;
    uint8_t digest[SILT_DIGEST_SIZE];
    for (;;) {
        if (silt_stream_next(s, &entry, e) < 0)
            return -1;
        if (!entry)
            break;
        bool directory =
            !archive_entry_hardlink(entry) && archive_entry_filetype(entry) == AE_IFDIR;
        if (look_at(archive_entry_pathname(entry), directory, e) < 0)
            return -1;
    }
    if (silt_stream_finish(s, digest, e) < 0)
        return -1;
    if (memcmp(digest, l->diff, sizeof(digest)) != 0)
        return silt_fail(e, SILT_INVALID, "its content has another sha256 than diff_ids says");
    return 0;
}

/* ---- files ---- */

static int write_entries(struct silt_stream *s, struct silt_disk *d, struct silt_error *e)
{
    struct archive_entry *entry;
    for (;;) {
        if (silt_stream_next(s, &entry, e) < 0)
            return -1;
        if (!entry)
            return silt_disk_finish(d, e);
        if (silt_disk_take(d, entry, e) < 0)
            return -1;
        if (!whiteout_in(d->path) && silt_disk_write(d, s, entry, e) < 0)
            return -1;
    }
}

static int write_out(struct silt_stream *s, const struct silt_archive_limits *limits,
                     struct silt_fetch_result *result, struct silt_error *e)
{
    struct silt_disk disk = {0};
    int got = silt_disk_open(&disk, limits, result, e);
    disk.layer = true;
    if (got == 0)
        got = write_entries(s, &disk, e);
    silt_disk_close(&disk);
    return got;
}

/* `result` is NULL for the first pass. */
static int read_once(const struct silt_layer *l, const struct silt_archive_limits *limits,
                     struct silt_fetch_result *result, struct silt_error *e)
{
    struct silt_stream s = {0};
    struct unpacked *u = calloc(1, sizeof(*u));
    if (!u)
        return silt_fail(e, SILT_LIMIT, "no memory");
    u->source.read = read_unpacked;
    u->layer = l;
    u->limits = limits;
    int got = open_raw(u, e);
    if (got == 0)
        got = silt_stream_open(&s, &u->source, false, limits, e);
    if (got == 0)
        got = result ? write_out(&s, limits, result, e) : survey(&s, l, e);
    silt_stream_close(&s);
    (void)archive_read_free(u->raw);
    free(u);
    return got;
}

int silt_layer_apply(const struct silt_layer *l, const struct silt_archive_limits *limits,
                     struct silt_fetch_result *result, struct silt_error *e)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    if (read_once(l, limits, NULL, e) < 0 || read_once(l, limits, result, e) < 0)
        return silt_because(e, "layer %s", silt_log_quote(silt_slice_of(l->file->name), quoted));
    return 0;
}
