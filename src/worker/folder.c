/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ops.h"
#include "worker/place.h"

#include <errno.h>
#include <fcntl.h>

static int make_all(struct silt_task *t, mode_t mode, struct silt_error *e)
{
    silt_auto_fd base = -1, made = -1;
    if (t->path[0] != '/' && silt_task_base(t, &base, e) < 0)
        return -1;
    made = silt_place_make_folders(base >= 0 ? base : AT_FDCWD, t->path, mode);
    if (made < 0 && errno == ENOTDIR)
        errno = EEXIST; /* as `mkdir -p` on a file */
    return made >= 0 ? 0 : silt_fail_errno(e, "make folder %s", t->path);
}

static int make_one(struct silt_task *t, mode_t mode, struct silt_error *e)
{
    silt_auto_place p = {.dir = -1};
    if (silt_place_find(t, t->path, 0, &p, e) < 0) {
        if (e->sys != EISDIR) /* "/", "." and ".." are there */
            return -1;
        errno = EEXIST;
        return silt_fail_errno(e, "make folder %s", t->path);
    }
    return mkdirat(p.dir, p.name, mode) == 0 ? 0 : silt_fail_errno(e, "make folder %s", t->path);
}

int silt_task_mkdir(struct silt_task *t, struct silt_error *e)
{
    struct silt_worker_done done = {0};
    mode_t mode = t->ask.mode != 0 ? t->ask.mode & 07777 : 0777;
    if (t->path[0] == 0) {
        errno = ENOENT;
        return silt_fail_errno(e, "make folder %s", t->path);
    }
    if ((silt_task_has(t, SILT_WORKER_RECURSIVE) ? make_all(t, mode, e) : make_one(t, mode, e)) < 0)
        return -1;
    (void)silt_task_done(t, &done);
    return 0;
}
