/* SPDX-License-Identifier: Apache-2.0 */
/* change: changes modes, owners and lengths of existing files. */
#include "worker/ops.h"
#include "worker/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* since Linux 6.6, the same number on every architecture */
#endif

struct change {
    struct silt_task *task;
    struct silt_worker_done done;
};

/* ---- one object, held open with O_PATH ---- */

static int chmod_fd(int fd, mode_t mode)
{
    char path[32];
    if (syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOSYS)
        return -1;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return chmod(path, mode);
}

static int change_fd(const struct silt_task *t, int fd)
{
    if (t->op == SILT_WORKER_CHMOD)
        return chmod_fd(fd, t->ask.mode & 07777);
    return fchownat(fd, "", t->ask.uid, t->ask.gid, AT_EMPTY_PATH);
}

/* ---- a tree ---- */

/* Links have no mode of their own; chown changes the link's owner, not its target's. */
static int on_item(void *ctx, const struct silt_walk_item *i, struct silt_error *e)
{
    struct change *c = ctx;
    if (c->task->op == SILT_WORKER_CHMOD && S_ISLNK(i->st->st_mode))
        return 0;
    silt_auto_fd fd = silt_open_at(i->dir, i->name, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || change_fd(c->task, fd) < 0)
        return silt_fail_errno(e, "change %s", i->path.data);
    c->done.entries++;
    return 1;
}

static int change_below(struct change *c, int fd, struct silt_error *e)
{
    struct silt_walk w = {.task = c->task, .enter = on_item, .ctx = c};
    int root = silt_open_at(fd, ".", O_RDONLY | O_DIRECTORY, 0);
    return root >= 0 ? silt_walk_run(&w, root, e) : silt_fail_errno(e, "open %s", c->task->path);
}

static int change(struct silt_task *t, struct silt_error *e)
{
    struct change c = {.task = t, .done.entries = 1};
    silt_auto_fd fd = -1;
    struct stat st;
    int flags = O_PATH | (silt_task_has(t, SILT_WORKER_NOFOLLOW) ? O_NOFOLLOW : 0);
    if (silt_task_open(t, t->path, flags, 0, &fd, e) < 0)
        return -1;
    if (change_fd(t, fd) < 0 || fstat(fd, &st) < 0)
        return silt_fail_errno(e, "change %s", t->path);
    if (silt_task_has(t, SILT_WORKER_RECURSIVE) && S_ISDIR(st.st_mode)
        && change_below(&c, fd, e) < 0)
        return silt_because(e, "change %s", t->path);
    (void)silt_task_done(t, &c.done);
    return 0;
}

int silt_task_chmod(struct silt_task *t, struct silt_error *e)
{
    return change(t, e);
}

int silt_task_chown(struct silt_task *t, struct silt_error *e)
{
    return change(t, e);
}

/* ---- the length ---- */

int silt_task_truncate(struct silt_task *t, struct silt_error *e)
{
    struct silt_worker_done done = {0};
    silt_auto_fd fd = -1;
    struct stat st;
    if (silt_task_open_file(t, O_WRONLY, &fd, &st, e) < 0)
        return -1;
    errno = EFBIG;
    if (t->ask.length > INT64_MAX || ftruncate(fd, (off_t)t->ask.length) < 0 || fstat(fd, &st) < 0)
        return silt_fail_errno(e, "truncate %s", t->path);
    silt_meta_of(&st, &done.meta);
    (void)silt_task_done(t, &done);
    return 0;
}
