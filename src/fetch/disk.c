/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/disk.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"
#include "fetch/entry_path.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* libarchive's codes are errnos or its own; only a full disk matters. */
static int fail_entry(struct silt_disk *d, struct silt_error *e)
{
    char quoted[SILT_LOG_QUOTE_SIZE], why[SILT_LOG_QUOTE_SIZE];
    const char *text = archive_error_string(d->out); /* includes the raw name */
    bool full = archive_errno(d->out) == ENOSPC || archive_errno(d->out) == EDQUOT;
    return silt_fail(e, full ? SILT_NO_SPACE : SILT_INVALID, "entry %s: %s",
                     silt_log_quote(silt_slice_of(d->path), quoted),
                     silt_log_quote(silt_slice_of(text ? text : "unreadable"), why));
}

int silt_disk_refuse(struct silt_disk *d, const char *why, struct silt_error *e)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    return silt_fail(e, SILT_INVALID, "entry %s: %s",
                     silt_log_quote(silt_slice_of(d->path), quoted), why);
}

int silt_disk_open(struct silt_disk *d, const struct silt_archive_limits *limits,
                   struct silt_fetch_result *result, struct silt_error *e)
{
    /* No UNLINK: with it libarchive would remove a link in the way instead of refusing the
     * entry. */
    int flags = ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME
                | ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT
                | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS;
    (void)umask(022);
    *d = (struct silt_disk){.limits = limits, .result = result, .out = archive_write_disk_new()};
    d->directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->directory < 0)
        return silt_fail_errno(e, "open the output directory");
    if (!d->out || archive_write_disk_set_options(d->out, flags) != ARCHIVE_OK)
        return silt_fail(e, SILT_INTERNAL, "libarchive: open the output directory");
    return 0;
}

void silt_disk_close(struct silt_disk *d)
{
    (void)archive_write_free(d->out);
    d->out = NULL;
    silt_close_fd(&d->directory);
}

/* The path as it is written: clean, and in a layer resolved through links of lower layers. */
static const char *place_of(const struct silt_disk *d, const char *name, char ret[PATH_MAX])
{
    char cleaned[PATH_MAX];
    if (!d->layer)
        return silt_entry_path_clean(name, ret);
    const char *wrong = silt_entry_path_clean(name, cleaned);
    return wrong ? wrong : silt_entry_path_follow(cleaned, ret);
}

static int take_path(struct silt_disk *d, struct archive_entry *entry, struct silt_error *e)
{
    char place[PATH_MAX];
    const char *name = archive_entry_pathname(entry);
    (void)snprintf(d->path, sizeof(d->path), "%s", name ? name : "(unreadable name)");
    if (!name)
        return silt_disk_refuse(d, "its name is not UTF-8", e);
    const char *wrong = place_of(d, name, place);
    if (wrong)
        return silt_disk_refuse(d, wrong, e);
    memcpy(d->path, place, sizeof(place));
    archive_entry_copy_pathname(entry, d->path);

    const char *link = archive_entry_hardlink(entry);
    if (!link)
        return 0;
    wrong = place_of(d, link, place);
    if (wrong || !place[0])
        return silt_disk_refuse(d, "it is a hard link to a place outside", e);
    if (strcmp(place, d->path) == 0)
        return silt_disk_refuse(d, "it is a hard link to itself", e);
    archive_entry_copy_hardlink(entry, place);
    return 0;
}

static int check_count(const struct silt_disk *d, struct silt_error *e)
{
    if (d->result->entries > d->limits->entries)
        return silt_fail(e, SILT_LIMIT, "more than %llu entries",
                         (unsigned long long)d->limits->entries);
    return 0;
}

static int count_entry(struct silt_disk *d, struct archive_entry *entry, struct silt_error *e)
{
    uint64_t size = archive_entry_size(entry) > 0 ? (uint64_t)archive_entry_size(entry) : 0;
    d->result->entries++;
    if (check_count(d, e) < 0)
        return -1;
    if (__builtin_add_overflow(d->result->bytes, size, &d->result->bytes)
        || d->result->bytes > d->limits->bytes)
        return silt_fail(e, SILT_LIMIT, "more than %llu bytes unpacked",
                         (unsigned long long)d->limits->bytes);
    return 0;
}

/* Directories that only appear in a path are created, too: one entry can create thousands. */
static int count_directories(struct silt_disk *d, struct silt_error *e)
{
    char path[PATH_MAX], *slash;
    struct stat st;
    memcpy(path, d->path, sizeof(path));
    while ((slash = strrchr(path, '/'))) {
        *slash = 0;
        if (lstat(path, &st) == 0)
            break;
        d->result->entries++;
    }
    return check_count(d, e);
}

int silt_disk_take(struct silt_disk *d, struct archive_entry *entry, struct silt_error *e)
{
    return take_path(d, entry, e) < 0 || count_entry(d, entry, e) < 0 ? -1 : 0;
}

static bool is_wanted(struct archive_entry *entry)
{
    if (archive_entry_hardlink(entry))
        return true;
    mode_t type = archive_entry_filetype(entry);
    return type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK || type == AE_IFIFO;
}

static int write_data(struct silt_disk *d, struct silt_stream *s, struct silt_error *e)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    silt_slice bytes;
    int64_t offset;
    for (;;) {
        if (silt_stream_data(s, &bytes, &offset, e) < 0)
            return silt_because(e, "entry %s", silt_log_quote(silt_slice_of(d->path), quoted));
        if (!bytes.data)
            return 0;
        if (silt_limits_check_room(d->limits, d->directory, e) < 0)
            return -1;
        if (archive_write_data_block(d->out, bytes.data, bytes.len, offset) < ARCHIVE_OK)
            return fail_entry(d, e);
    }
}

/* An existing directory is reused for the entry; anything else is removed. */
static int make_way(const struct silt_disk *d, struct archive_entry *entry, struct silt_error *e)
{
    struct stat st;
    if (!d->layer || lstat(d->path, &st) < 0)
        return 0;
    bool directory = !archive_entry_hardlink(entry) && archive_entry_filetype(entry) == AE_IFDIR;
    return directory && S_ISDIR(st.st_mode) ? 0 : silt_entry_path_remove(d->path, e);
}

int silt_disk_write(struct silt_disk *d, struct silt_stream *s, struct archive_entry *entry,
                    struct silt_error *e)
{
    if (!d->path[0])
        return 0; /* the next header skips its data */
    if (make_way(d, entry, e) < 0)
        return -1;
    if (!is_wanted(entry)) {
        d->result->left_out++;
        return 0;
    }
    if (archive_entry_uid(entry) >= SILT_SLOT_IDS || archive_entry_gid(entry) >= SILT_SLOT_IDS
        || archive_entry_uid(entry) < 0 || archive_entry_gid(entry) < 0)
        return silt_disk_refuse(d, "its owner is not a number from 0 to 65535", e);
    if (count_directories(d, e) < 0 || silt_limits_check_room(d->limits, d->directory, e) < 0)
        return -1;
    if (archive_write_header(d->out, entry) != ARCHIVE_OK)
        return fail_entry(d, e);
    if (archive_entry_size(entry) > 0 && write_data(d, s, e) < 0)
        return -1;
    if (archive_write_finish_entry(d->out) != ARCHIVE_OK)
        return fail_entry(d, e);
    return 0;
}

int silt_disk_finish(struct silt_disk *d, struct silt_error *e)
{
    if (archive_write_close(d->out) != ARCHIVE_OK)
        return fail_entry(d, e);
    return 0;
}
