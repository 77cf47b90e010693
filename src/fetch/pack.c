/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/pack.h"

#include "base/log.h"
#include "base/own.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { BLOCK = 256 * 1024, NAMES_MAX = 4000000 /* in one directory */ };

struct pack {
    struct archive *out;
    struct archive_entry_linkresolver *links;
    struct silt_pack_sink *sink; /* borrowed */
    struct silt_error *e;
    bool failed; /* the sink has reported why */
    uint64_t left_out;
    char path[PATH_MAX]; /* of the current entry */
    char block[BLOCK];
};

static int fail_at(struct pack *p, const char *verb)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    return silt_fail_errno(p->e, "%s %s", verb, silt_log_quote(silt_slice_of(p->path), quoted));
}

static int fail_out(struct pack *p)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    const char *why = archive_error_string(p->out);
    if (p->failed)
        return -1;
    return silt_fail(p->e, SILT_INTERNAL, "pack %s: %s",
                     silt_log_quote(silt_slice_of(p->path), quoted), why ? why : "libarchive");
}

static la_ssize_t on_write(struct archive *out, void *user, const void *bytes, size_t size)
{
    struct pack *p = user;
    if (p->sink->take(p->sink, (silt_slice){bytes, size}, p->e) == 0)
        return (la_ssize_t)size;
    p->failed = true;
    archive_set_error(out, EIO, "stopped");
    return -1;
}

/* ---- names of a directory ---- */

struct names {
    char **items;
    size_t count, room;
};

static void free_names(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
}
#define auto_names __attribute__((cleanup(free_names))) struct names

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_name(struct names *n, const char *name)
{
    if (n->count == n->room) {
        size_t room = n->room > 0 ? 2 * n->room : 64;
        char **more = room <= NAMES_MAX ? reallocarray(n->items, room, sizeof(*more)) : NULL;
        if (!more)
            return false;
        n->items = more;
        n->room = room;
    }
    n->items[n->count] = strdup(name);
    return n->items[n->count] && ++n->count;
}

/* The directory is closed before its entries are visited: trees are deep, descriptors few. */
static int list(struct pack *p, struct names *ret)
{
    int fd = open(p->path[0] ? p->path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    bool room = true;
    if (!dir) {
        silt_close_fd(&fd);
        return fail_at(p, "open directory");
    }
    for (struct dirent *d; room && (d = readdir(dir));)
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            room = add_name(ret, d->d_name);
    (void)closedir(dir);
    if (!room)
        return silt_fail(p->e, SILT_LIMIT, "no memory for the names of a directory");
    if (ret->count > 0)
        qsort(ret->items, ret->count, sizeof(*ret->items), compare);
    return 0;
}

/* ---- entries ---- */

static bool is_packed(const char *name, const struct stat *st)
{
    if (strncmp(name, ".wh.", 4) == 0)
        return false;
    return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode)
           || S_ISFIFO(st->st_mode);
}

static int copy_data(struct pack *p, int fd, uint64_t left)
{
    while (left > 0) {
        ssize_t n = read(fd, p->block, left < BLOCK ? (size_t)left : BLOCK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_at(p, "read");
        if (n == 0)
            return silt_fail(p->e, SILT_INTERNAL, "a file of the image has become shorter");
        if (archive_write_data(p->out, p->block, (size_t)n) != n)
            return fail_out(p);
        left -= (uint64_t)n;
    }
    return 0;
}

static int write_entry(struct pack *p, struct archive_entry *entry)
{
    if (archive_write_header(p->out, entry) < ARCHIVE_WARN)
        return fail_out(p);
    if (archive_entry_hardlink(entry) || archive_entry_size(entry) <= 0)
        return 0;
    silt_auto_fd fd = open(p->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return fail_at(p, "open");
    return copy_data(p, fd, (uint64_t)archive_entry_size(entry));
}

static int describe(struct pack *p, const struct stat *st, struct archive_entry *entry)
{
    archive_entry_copy_stat(entry, st);
    archive_entry_copy_pathname(entry, p->path);
    /* Layers are subvolumes: overlayfs shows files of two of them with one device number, and their
     * inode numbers may be equal; their ctime is not. Only for the hard link resolver: a tar does
     * not store a file's device. */
    archive_entry_set_dev(
        entry, (dev_t)((uint64_t)st->st_ctim.tv_sec * 1000000000U + (uint64_t)st->st_ctim.tv_nsec));
    archive_entry_set_mtime(entry, st->st_mtime, 0);
    archive_entry_unset_atime(entry);
    archive_entry_unset_ctime(entry);
    archive_entry_unset_birthtime(entry);
    if (!S_ISREG(st->st_mode))
        archive_entry_set_size(entry, 0);
    if (!S_ISLNK(st->st_mode))
        return 0;
    ssize_t n = readlink(p->path, p->block, PATH_MAX);
    if (n < 0 || n >= PATH_MAX)
        return fail_at(p, "read link");
    p->block[n] = 0;
    archive_entry_copy_symlink(entry, p->block);
    return 0;
}

/* Another name of a packed file becomes a link to it. */
static int pack_entry(struct pack *p, const struct stat *st)
{
    struct archive_entry *entry = archive_entry_new(), *spare = NULL;
    if (!entry)
        return silt_fail(p->e, SILT_LIMIT, "no memory");
    int got = describe(p, st, entry);
    if (got == 0) {
        archive_entry_linkify(p->links, &entry, &spare);
        got = write_entry(p, entry);
    }
    archive_entry_free(entry);
    archive_entry_free(spare);
    return got;
}

static int pack_directory(struct pack *p);

static int pack_name(struct pack *p, const char *name)
{
    struct stat st;
    size_t len = strlen(p->path), more = strlen(name);
    if (len + more + 2 > sizeof(p->path))
        return silt_fail(p->e, SILT_LIMIT,
                         "a path of the image is longer than an archive may have");
    if (len > 0)
        p->path[len++] = '/';
    memcpy(p->path + len, name, more + 1);
    if (lstat(p->path, &st) < 0)
        return fail_at(p, "look at");
    if (!is_packed(name, &st)) {
        p->left_out++;
        return 0;
    }
    if (pack_entry(p, &st) < 0)
        return -1;
    return S_ISDIR(st.st_mode) ? pack_directory(p) : 0;
}

/* The depth is limited by the length of a path. */
static int pack_directory(struct pack *p) /* NOLINT(misc-no-recursion) */
{
    auto_names names = {0};
    size_t len = strlen(p->path);
    if (list(p, &names) < 0)
        return -1;
    for (size_t i = 0; i < names.count; i++) {
        if (pack_name(p, names.items[i]) < 0)
            return -1;
        p->path[len] = 0;
    }
    return 0;
}

static int open_pack(struct pack *p)
{
    p->out = archive_write_new();
    p->links = archive_entry_linkresolver_new();
    if (!p->out || !p->links || archive_write_set_format_gnutar(p->out) != ARCHIVE_OK
        || archive_write_set_bytes_per_block(p->out, BLOCK) != ARCHIVE_OK
        || archive_write_set_bytes_in_last_block(p->out, 1) != ARCHIVE_OK
        || archive_write_open(p->out, p, NULL, on_write, NULL) != ARCHIVE_OK)
        return silt_fail(p->e, SILT_UNAVAILABLE, "libarchive without tar");
    archive_entry_linkresolver_set_strategy(p->links, ARCHIVE_FORMAT_TAR_GNUTAR);
    return 0;
}

int silt_pack(struct silt_pack_sink *sink, uint64_t *ret_left_out, struct silt_error *e)
{
    struct pack *p = calloc(1, sizeof(*p));
    if (!p)
        return silt_fail(e, SILT_LIMIT, "no memory");
    p->sink = sink;
    p->e = e;
    int got = open_pack(p);
    if (got == 0)
        got = pack_directory(p);
    if (got == 0 && archive_write_close(p->out) != ARCHIVE_OK)
        got = fail_out(p);
    *ret_left_out = p->left_out;
    if (p->out && got < 0)
        (void)archive_write_fail(p->out); /* so that freeing it writes nothing more */
    (void)archive_write_free(p->out);
    archive_entry_linkresolver_free(p->links);
    free(p);
    return got;
}
