/* SPDX-License-Identifier: Apache-2.0 */
/* untar: unpacks into a directory of its own first, where the image's tar can do what it likes; the
 * files are moved to their place only once everything is unpacked and tar has succeeded. The parent
 * of that directory is accessible to root only: files that another user added would be moved along
 * to a place that is not theirs. */
#include "base/fs_identity.h"
#include "worker/ops.h"
#include "worker/path_at.h"
#include "worker/program.h"
#include "worker/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static const char inner[] = "tar";

struct unpack {
    struct silt_task *task;
    struct silt_path_at place; /* of a directory that does not exist yet; dir -1: it exists */
    int target;                /* owned: the existing directory; -1: none */
    int base;                  /* borrowed: the temporary directory's parent */
    int closed;                /* owned: the temporary directory */
    int temp;                  /* owned: the directory in it to unpack into */
    char name[SILT_TEMP_SIZE];
    struct silt_fs_identity us; /* the user we create files as */
    struct silt_worker_done done;
};

/* ---- the temporary directory ---- */

/* Inside an existing directory: for a mount, there is no other place on its file system. */
static int find(struct unpack *u, struct silt_error *e)
{
    struct silt_task *t = u->task;
    unsigned how = silt_task_has(t, SILT_WORKER_PARENTS) ? SILT_PATH_AT_PARENTS : 0;
    if (silt_task_open(t, t->path, O_PATH | O_DIRECTORY, 0, &u->target, e) == 0) {
        u->base = u->target;
        return 0;
    }
    if (e->sys != ENOENT
        || silt_path_at_find(t, t->path, how | SILT_PATH_AT_FOLLOW, &u->place, e) < 0)
        return -1;
    u->base = u->place.dir;
    return 0;
}

static int make_temp(struct unpack *u, struct silt_error *e)
{
    silt_path_at_temp(u->name);
    u->closed = silt_path_at_make_closed(u->base, u->name);
    if (u->closed >= 0 && mkdirat(u->closed, inner, 0755) == 0)
        u->temp = silt_open_at(u->closed, inner, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return u->temp >= 0 ? 0 : silt_fail_errno(e, "unpack to %s", u->task->path);
}

/* ---- tar ---- */

static int feed(struct unpack *u, struct silt_program *p, struct silt_error *e)
{
    bool last = silt_task_has(u->task, SILT_WORKER_ONLY);
    silt_slice bytes = u->task->text;
    for (;;) {
        u->done.bytes += bytes.len;
        if (silt_program_write(p, bytes) < 0) /* 0: tar has seen the end; the rest is padding */
            return silt_fail(e, SILT_GONE, "nobody waits any more");
        if (last)
            break;
        if (silt_task_next(u->task, &bytes, &last) == 0)
            return silt_fail(e, SILT_GONE, "nobody waits any more");
    }
    return silt_program_end(p, e) < 0 ? silt_because(e, "unpack to %s", u->task->path) : 0;
}

static int run_tar(struct unpack *u, struct silt_error *e)
{
    char tar[] = "tar", zstd[] = "--zstd", how[] = "-xf", in[] = "-";
    char *const plain[] = {tar, how, in, NULL}, *const packed[] = {tar, zstd, how, in, NULL};
    struct silt_program p = {.task = u->task, .pipe = -1, .err = -1};
    char *const *argv = silt_task_has(u->task, SILT_WORKER_ZSTD) ? packed : plain;
    int answer = silt_program_start(&p, argv, u->temp, true, e);
    if (answer == 0)
        answer = feed(u, &p, e);
    silt_program_fini(&p);
    return answer;
}

/* ---- moving into place ---- */

static int open_parent(int root, const struct silt_walk_item *i)
{
    char path[SILT_WORKER_PATH_MAX + 1];
    size_t len = i->path.len - strlen(i->name);
    if (len == 0)
        return silt_open_beneath(root, ".", O_PATH | O_DIRECTORY, 0);
    memcpy(path, i->path.data, len);
    path[len - 1] = 0;
    return silt_open_beneath(root, path, O_PATH | O_DIRECTORY, 0);
}

/* Owners as if the user's own tar had unpacked it. */
static bool gives_away(const struct unpack *u)
{
    return (u->us.uid != 0 || u->us.gid != 0) && !silt_task_has(u->task, SILT_WORKER_OWNERS);
}

/* Checked before anything is moved, so that a conflict changes nothing. A directory replaces a
 * file; a file does not replace a directory. */
static int on_check(void *ctx, const struct silt_walk_item *i, struct silt_error *e)
{
    struct unpack *u = ctx;
    struct stat st;
    u->done.entries++;
    if (gives_away(u) && fchownat(i->dir, i->name, u->us.uid, u->us.gid, AT_SYMLINK_NOFOLLOW) < 0)
        return silt_fail_errno(e, "%s", i->path.data);
    if (u->target < 0 || S_ISDIR(i->st->st_mode))
        return 1;
    silt_auto_fd dir = open_parent(u->target, i);
    if (dir < 0 || fstatat(dir, i->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return 1;
    errno = EISDIR;
    return silt_fail_errno(e, "%s", i->path.data);
}

/* A mount inside the target: files are copied there. A directory is created, and the walk continues
 * in it. */
static int cross(struct unpack *u, const struct silt_walk_item *i, int dir, struct silt_error *e)
{
    char temp[SILT_TEMP_SIZE];
    int answer;
    if (S_ISDIR(i->st->st_mode)) {
        if (mkdirat(dir, i->name, i->st->st_mode & 07777) < 0
            || fchownat(dir, i->name, i->st->st_uid, i->st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
            return silt_fail_errno(e, "%s", i->path.data);
        return 1;
    }
    silt_path_at_temp(temp);
    answer = silt_copy_tree(u->task, i->dir, i->name, dir, temp, e);
    if (answer == 0 && silt_path_at_rename(dir, temp, dir, i->name, false) < 0)
        answer = silt_fail_errno(e, "%s", i->path.data);
    if (answer < 0)
        (void)unlinkat(dir, temp, 0);
    return answer;
}

static int on_merge(void *ctx, const struct silt_walk_item *i, struct silt_error *e)
{
    struct unpack *u = ctx;
    struct stat st = {0};
    bool is_directory = S_ISDIR(i->st->st_mode);
    silt_auto_fd dir = open_parent(u->target, i);
    if (dir < 0)
        return silt_fail_errno(e, "%s", i->path.data);
    if (fstatat(dir, i->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_directory && S_ISDIR(st.st_mode))
        return 1;
    if (is_directory && st.st_mode != 0 && unlinkat(dir, i->name, 0) < 0)
        return silt_fail_errno(e, "%s", i->path.data);
    if (silt_path_at_rename(i->dir, i->name, dir, i->name, is_directory) == 0)
        return 0;
    return errno == EXDEV ? cross(u, i, dir, e) : silt_fail_errno(e, "%s", i->path.data);
}

static int walk(struct unpack *u, silt_walk_step *step, struct silt_error *e)
{
    struct silt_walk w = {.task = u->task, .enter = step, .ctx = u};
    int root = silt_open_at(u->temp, ".", O_RDONLY | O_DIRECTORY, 0);
    return root >= 0 ? silt_walk_run(&w, root, e) : silt_fail_errno(e, "open");
}

static int settle(struct unpack *u, struct silt_error *e)
{
    if (walk(u, on_check, e) < 0)
        return silt_because(e, "unpack to %s", u->task->path);
    u->task->finishing = true; /* once begun, moving is completed */
    if (u->target >= 0 && walk(u, on_merge, e) < 0)
        return silt_because(e, "unpack to %s", u->task->path);
    if (u->target < 0 && gives_away(u) && fchown(u->temp, u->us.uid, u->us.gid) < 0)
        return silt_fail_errno(e, "unpack to %s", u->task->path);
    if (u->target < 0 && silt_path_at_rename(u->closed, inner, u->base, u->place.name, true) < 0)
        return silt_fail_errno(e, "unpack to %s", u->task->path);
    return 0;
}

/* ---- the operation ---- */

static int run(struct unpack *u, struct silt_error *e)
{
    struct silt_error ignored;
    uint64_t count = 0;
    if (silt_tar_check(u->task, e) < 0 || find(u, e) < 0)
        return -1;
    u->us = silt_fs_identity_be_root();
    int answer = make_temp(u, e);
    if (answer == 0)
        answer = run_tar(u, e);
    if (answer == 0)
        answer = settle(u, e);
    u->task->finishing = true;
    if (u->closed >= 0)
        (void)silt_delete_tree(u->task, u->base, u->name, &count, &ignored);
    (void)silt_fs_identity_be(u->us, &ignored);
    return answer;
}

int silt_task_untar(struct silt_task *t, struct silt_error *e)
{
    struct unpack u = {
        .task = t, .place.dir = -1, .target = -1, .base = -1, .closed = -1, .temp = -1};
    int answer = run(&u, e);
    silt_close_fd(&u.temp);
    silt_close_fd(&u.closed);
    silt_close_fd(&u.target);
    silt_path_at_fini(&u.place);
    if (answer == 0)
        (void)silt_task_done(t, &u.done);
    return answer;
}
