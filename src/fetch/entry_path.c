/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/entry_path.h"

#include "base/log.h"
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { LINKS_MAX = 40 /* as in Linux */ };

static const char too_long[] = "its path is too long";

/* Appends a component; empty ones and dots add nothing. */
static bool append(char path[PATH_MAX], silt_slice part)
{
    size_t len = strlen(path);
    if (part.len == 0 || silt_slice_eq(part, SILT_LIT(".")))
        return true;
    if (part.len > NAME_MAX || len + part.len + 2 > PATH_MAX)
        return false;
    if (len > 0)
        path[len++] = '/';
    memcpy(path + len, part.data, part.len);
    path[len + part.len] = 0;
    return true;
}

static void drop_last(char *path)
{
    char *slash = strrchr(path, '/');
    *(slash ? slash : path) = 0;
}

const char *silt_entry_path_clean(const char *from, char out[PATH_MAX])
{
    silt_slice rest = silt_slice_of(from), part;
    out[0] = 0;
    if (rest.len == 0)
        return "it has no name";
    if (rest.data[0] == '/')
        return "its path is absolute";
    while (silt_slice_split(&rest, '/', &part)) {
        if (silt_slice_eq(part, SILT_LIT("..")))
            return "its path climbs by `..`";
        if (!append(out, part))
            return too_long;
    }
    return NULL;
}

/* What remains to be walked after the link `path`: its target, then `rest`. */
static bool enter_link(char path[PATH_MAX], silt_slice rest, char left[2 * PATH_MAX])
{
    char next[2 * PATH_MAX];
    ssize_t n = readlink(path, next, PATH_MAX);
    if (n <= 0 || n >= PATH_MAX)
        return false;
    size_t len = (size_t)n;
    if (len + rest.len + 2 > sizeof(next))
        return false;
    if (next[0] == '/')
        path[0] = 0;
    else
        drop_last(path);
    next[len++] = '/';
    if (rest.len > 0) /* points into `left` itself */
        memcpy(next + len, rest.data, rest.len);
    next[len + rest.len] = 0;
    memcpy(left, next, len + rest.len + 1);
    return true;
}

static const char *walk(char left[2 * PATH_MAX], char out[PATH_MAX])
{
    silt_slice rest = silt_slice_of(left), part;
    struct stat st;
    int links = 0;
    while (silt_slice_split(&rest, '/', &part)) {
        if (silt_slice_eq(part, SILT_LIT(".."))) {
            drop_last(out);
            continue;
        }
        if (!append(out, part))
            return too_long;
        if (!out[0] || lstat(out, &st) < 0 || !S_ISLNK(st.st_mode))
            continue;
        if (++links > LINKS_MAX || !enter_link(out, rest, left))
            return "its path leads through too many symbolic links";
        rest = silt_slice_of(left);
    }
    return NULL;
}

const char *silt_entry_path_follow(const char *clean, char out[PATH_MAX])
{
    char left[2 * PATH_MAX];
    const char *slash = strrchr(clean, '/');
    const char *last = slash ? slash + 1 : clean;
    size_t directory = slash ? (size_t)(slash - clean) : 0;
    memcpy(left, clean, directory);
    left[directory] = 0;
    out[0] = 0;
    const char *wrong = walk(left, out);
    if (wrong)
        return wrong;
    return append(out, silt_slice_of(last)) ? NULL : too_long;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int fail_at(const char *verb, const char *path, struct silt_error *e)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    return silt_fail_errno(e, "%s %s", verb, silt_log_quote(silt_slice_of(path), quoted));
}

/* Removes the contents of the directory `at` up to the first non-empty directory, which becomes
 * `at`. Uses one descriptor, however deep the tree is. */
static int sweep(char at[PATH_MAX], bool *ret_deeper, struct silt_error *e)
{
    int fd = open(at[0] ? at : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *d;
    size_t len = strlen(at);
    *ret_deeper = false;
    if (!dir) {
        silt_close_fd(&fd);
        return fail_at("open directory", at, e);
    }
    int got = 0;
    while (got == 0 && !*ret_deeper && (d = readdir(dir))) {
        if (is_dots(d->d_name))
            continue;
        if (!append(at, silt_slice_of(d->d_name)))
            got = silt_fail(e, SILT_INVALID, "remove a directory: %s", too_long);
        else if (unlink(at) == 0 || rmdir(at) == 0)
            at[len] = 0;
        else if (errno == ENOTEMPTY)
            *ret_deeper = true;
        else
            got = fail_at("remove", at, e);
    }
    (void)closedir(dir);
    return got;
}

int silt_entry_path_empty(const char *path, struct silt_error *e)
{
    char at[PATH_MAX];
    struct stat st;
    bool deeper;
    size_t top = strlen(path);
    if (top >= sizeof(at))
        return silt_fail(e, SILT_INVALID, "%s", too_long);
    memcpy(at, path, top + 1);
    if (lstat(top > 0 ? at : ".", &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    for (;;) {
        if (sweep(at, &deeper, e) < 0)
            return -1;
        if (deeper)
            continue;
        if (strlen(at) == top)
            return 0;
        if (rmdir(at) < 0)
            return fail_at("remove directory", at, e);
        drop_last(at);
    }
}

int silt_entry_path_remove(const char *path, struct silt_error *e)
{
    if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
        return 0;
    if (silt_entry_path_empty(path, e) < 0)
        return -1;
    if (rmdir(path) < 0 && errno != ENOENT)
        return fail_at("remove", path, e);
    return 0;
}
