/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ops.h"

#include <fcntl.h>
#include <sys/stat.h>

static uint32_t type_of(mode_t mode)
{
    if (S_ISREG(mode))
        return SILT_TYPE_FILE;
    if (S_ISDIR(mode))
        return SILT_TYPE_DIR;
    return S_ISLNK(mode) ? SILT_TYPE_LINK : SILT_TYPE_OTHER;
}

void silt_meta_of(const struct stat *st, struct silt_worker_meta *ret)
{
    *ret = (struct silt_worker_meta){
        .size = (uint64_t)st->st_size,
        .ino = st->st_ino,
        .dev = st->st_dev,
        .mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
        .ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .type = type_of(st->st_mode),
        .nlink = (uint32_t)st->st_nlink,
    };
}

int silt_task_stat(struct silt_task *t, struct silt_error *e)
{
    silt_auto_fd fd = -1;
    struct stat st;
    struct silt_worker_meta meta;
    if (silt_task_open(t, t->path, O_PATH | (silt_task_has(t, SILT_WORKER_NOFOLLOW) ? O_NOFOLLOW : 0), 0, &fd, e) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return silt_fail_errno(e, "stat %s", t->path);
    silt_meta_of(&st, &meta);
    (void)silt_task_say(t, SILT_WORKER_SAY_META, SILT_WORKER_LAST, (silt_slice){(const char *)&meta, sizeof(meta)},
                        (silt_slice){NULL, 0});
    return 0;
}
