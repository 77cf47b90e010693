/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ops.h"
#include "worker/path_at.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static int make_all(struct silt_task *t, mode_t mode, int *ret_fd, struct silt_error *e)
{
    silt_auto_fd base = -1;
    if (t->path[0] != '/' && silt_task_base(t, &base, e) < 0)
        return -1;
    *ret_fd = silt_path_at_make_directories(base >= 0 ? base : AT_FDCWD, t->path, mode);
    if (*ret_fd < 0 && errno == ENOTDIR)
        errno = EEXIST; /* like `mkdir -p` on a file */
    return *ret_fd >= 0 ? 0 : silt_fail_errno(e, "make directory %s", t->path);
}

static int make_one(struct silt_task *t, mode_t mode, struct silt_error *e)
{
    silt_auto_place p = {.dir = -1};
    if (silt_path_at_find(t, t->path, 0, &p, e) < 0) {
        if (e->sys != EISDIR) /* "/", "." and ".." exist */
            return -1;
        errno = EEXIST;
        return silt_fail_errno(e, "make directory %s", t->path);
    }
    return mkdirat(p.dir, p.name, mode) == 0 ? 0 : silt_fail_errno(e, "make directory %s", t->path);
}

int silt_task_mkdir(struct silt_task *t, struct silt_error *e)
{
    struct silt_worker_done done = {0};
    silt_auto_fd made = -1;
    mode_t mode = t->ask.mode != 0 ? t->ask.mode & 07777 : 0777;
    if (t->path[0] == 0) {
        errno = ENOENT;
        return silt_fail_errno(e, "make directory %s", t->path);
    }
    bool all = silt_task_has(t, SILT_WORKER_RECURSIVE);
    if ((all ? make_all(t, mode, &made, e) : make_one(t, mode, e)) < 0)
        return -1;
    (void)silt_task_done(t, &done);
    return 0;
}

int silt_task_directory(struct silt_task *t, struct silt_error *e)
{
    char link[32], path[SILT_WORKER_PATH_MAX];
    silt_auto_fd fd = -1;
    if (make_all(t, 0755, &fd, e) < 0)
        return -1;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path));
    if (n < 0)
        return silt_fail_errno(e, "read the path of %s", t->path);
    (void)silt_task_say(t, SILT_WORKER_SAY_DATA, SILT_WORKER_LAST, (silt_slice){path, (size_t)n},
                        (silt_slice){NULL, 0});
    return 0;
}
