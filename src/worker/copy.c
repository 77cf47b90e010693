/* SPDX-License-Identifier: Apache-2.0 */
/* copy: copies like `cp -a`, except that hard links become separate files: keeping them would mean
 * remembering every file. */
#include "base/fs_identity.h"
#include "worker/ops.h"
#include "worker/path_at.h"
#include "worker/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { PIECE = 8 << 20, XATTRS_MAX = 16 << 10 };

struct copy {
    struct silt_task *task;
    int root; /* the copy's top directory: borrowed */
};

/* ---- metadata ---- */

/* Best effort: the other file system may not support them, and some belong to the kernel. */
static void copy_xattrs(int from, int to)
{
    static char names[XATTRS_MAX], value[XATTRS_MAX];
    ssize_t len = flistxattr(from, names, sizeof(names));
    for (const char *name = names; len > 0 && name < names + len; name += strlen(name) + 1) {
        ssize_t n = fgetxattr(from, name, value, sizeof(value));
        if (n >= 0)
            (void)fsetxattr(to, name, value, (size_t)n, 0);
    }
}

static int dress(int from, int to)
{
    struct stat st;
    if (fstat(from, &st) < 0 || fchown(to, st.st_uid, st.st_gid) < 0
        || fchmod(to, st.st_mode & 07777) < 0)
        return -1;
    copy_xattrs(from, to);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    return futimens(to, times);
}

static int dress_name(int dir, const char *name, const struct stat *st)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    if (fchownat(dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (!S_ISLNK(st->st_mode) && fchmodat(dir, name, st->st_mode & 07777, 0) < 0)
        return -1;
    return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

/* ---- one object ---- */

/* The kernel refuses the first call between two file systems. */
static ssize_t copy_piece(int from, off_t *at, int to, size_t len)
{
    off_t there = *at;
    ssize_t n = copy_file_range(from, at, to, &there, len, 0);
    if (n >= 0 || (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP))
        return n;
    return lseek(to, *at, SEEK_SET) < 0 ? -1 : sendfile(to, from, at, len);
}

static int copy_range(struct silt_task *t, int from, off_t at, off_t end, int to)
{
    while (at < end) {
        size_t len = end - at < PIECE ? (size_t)(end - at) : PIECE;
        ssize_t n = copy_piece(from, &at, to, len);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0)
            return 0; /* the file became shorter */
        errno = EPIPE;
        if (!silt_task_is_wanted(t))
            return -1;
    }
    return 0;
}

/* Preserves holes. */
static int copy_bytes(struct silt_task *t, int from, int to, off_t size)
{
    off_t end = 0, data;
    while ((data = lseek(from, end, SEEK_DATA)) >= 0 && data < size) {
        end = lseek(from, data, SEEK_HOLE);
        if (end < 0 || copy_range(t, from, data, end < size ? end : size, to) < 0)
            return -1;
    }
    /* the file system does not support holes */
    if (data < 0 && errno == EINVAL && copy_range(t, from, 0, size, to) < 0)
        return -1;
    if (data < 0 && errno != EINVAL && errno != ENXIO)
        return -1;
    return ftruncate(to, size);
}

static int copy_file(struct silt_task *t, const struct silt_walk_item *i, int to_dir,
                     const char *to)
{
    struct stat st;
    silt_auto_fd out = -1, in = silt_open_at(i->dir, i->name, O_RDONLY | O_NOFOLLOW, 0);
    if (in < 0 || fstat(in, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) { /* replaced since it was checked */
        errno = ENXIO;
        return -1;
    }
    out = silt_open_at(to_dir, to, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0600);
    if (out < 0 || copy_bytes(t, in, out, st.st_size) < 0)
        return -1;
    return dress(in, out);
}

static int copy_link(const struct silt_walk_item *i, int to_dir, const char *to)
{
    char target[SILT_WORKER_PATH_MAX + 1];
    ssize_t n = readlinkat(i->dir, i->name, target, SILT_WORKER_PATH_MAX);
    if (n < 0)
        return -1;
    target[n] = 0;
    return symlinkat(target, to_dir, to) < 0 ? -1 : dress_name(to_dir, to, i->st);
}

/* A directory gets its metadata once its contents are complete. */
static int copy_one(struct silt_task *t, const struct silt_walk_item *i, int to_dir, const char *to)
{
    if (S_ISREG(i->st->st_mode))
        return copy_file(t, i, to_dir, to);
    if (S_ISLNK(i->st->st_mode))
        return copy_link(i, to_dir, to);
    if (S_ISDIR(i->st->st_mode))
        return mkdirat(to_dir, to, 0700);
    if (mknodat(to_dir, to, (i->st->st_mode & S_IFMT) | 0600, i->st->st_rdev) < 0)
        return -1;
    return dress_name(to_dir, to, i->st);
}

/* ---- a tree ---- */

/* The copy's directory that will contain the item. */
static int open_parent(const struct copy *c, const struct silt_walk_item *i)
{
    char path[SILT_WORKER_PATH_MAX + 1];
    size_t len = i->path.len - strlen(i->name);
    if (len == 0)
        return silt_open_beneath(c->root, ".", O_PATH | O_DIRECTORY, 0);
    memcpy(path, i->path.data, len);
    path[len - 1] = 0;
    return silt_open_beneath(c->root, path, O_PATH | O_DIRECTORY, 0);
}

static int on_enter(void *ctx, const struct silt_walk_item *i, struct silt_error *e)
{
    struct copy *c = ctx;
    silt_auto_fd to = open_parent(c, i);
    if (to < 0 || copy_one(c->task, i, to, i->name) < 0)
        return silt_fail_errno(e, "copy %s", i->path.data);
    return 1;
}

static int on_leave(void *ctx, const struct silt_walk_item *i, struct silt_error *e)
{
    struct copy *c = ctx;
    silt_auto_fd from = silt_open_at(i->dir, i->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    silt_auto_fd to = silt_open_beneath(c->root, i->path.data, O_RDONLY | O_DIRECTORY, 0);
    if (from < 0 || to < 0 || dress(from, to) < 0)
        return silt_fail_errno(e, "copy %s", i->path.data);
    return 0;
}

static int copy_below(struct silt_task *t, int from_dir, const char *from, int to,
                      struct silt_error *e)
{
    struct copy c = {.task = t, .root = to};
    struct silt_walk w = {.task = t, .enter = on_enter, .leave = on_leave, .ctx = &c};
    silt_auto_fd self = -1;
    int root = silt_open_at(from_dir, from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (root < 0)
        return silt_fail_errno(e, "open %s", from);
    self = fcntl(root, F_DUPFD_CLOEXEC, 0);
    if (silt_walk_run(&w, root, e) < 0)
        return -1;
    return self >= 0 && dress(self, to) == 0 ? 0 : silt_fail_errno(e, "copy %s", from);
}

static int copy(struct silt_task *t, int from_dir, const char *from, int to_dir, const char *to,
                struct silt_error *e)
{
    struct stat st;
    struct silt_walk_item i = {.dir = from_dir, .name = from, .st = &st};
    if (fstatat(from_dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return silt_fail_errno(e, "copy %s", from);
    if (!S_ISDIR(st.st_mode))
        return copy_one(t, &i, to_dir, to) < 0 ? silt_fail_errno(e, "copy %s", from) : 0;
    silt_auto_fd root = silt_path_at_make_closed(to_dir, to);
    return root >= 0 ? copy_below(t, from_dir, from, root, e) : silt_fail_errno(e, "copy %s", from);
}

int silt_copy_tree(struct silt_task *t, int from_dir, const char *from, int to_dir, const char *to,
                   struct silt_error *e)
{
    struct silt_error ignored;
    struct silt_fs_identity us = silt_fs_identity_be_root();
    int answer = copy(t, from_dir, from, to_dir, to, e);
    (void)silt_fs_identity_be(us, &ignored);
    return answer;
}
