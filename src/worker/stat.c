/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/type/mime.h"
#include "worker/ops.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

uint32_t silt_type_of(mode_t mode)
{
    if (S_ISREG(mode))
        return SILT_TYPE_FILE;
    if (S_ISDIR(mode))
        return SILT_TYPE_DIR;
    return S_ISLNK(mode) ? SILT_TYPE_LINK : SILT_TYPE_OTHER;
}

/* A guest can set any time. */
int64_t silt_ns_of(struct timespec t)
{
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)t.tv_sec, (int64_t)1000000000, &ns)
        || __builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
        return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

void silt_meta_of(const struct stat *st, struct silt_worker_meta *ret)
{
    *ret = (struct silt_worker_meta){
        .size = (uint64_t)st->st_size,
        .ino = st->st_ino,
        .dev = st->st_dev,
        .mtime_ns = silt_ns_of(st->st_mtim),
        .ctime_ns = silt_ns_of(st->st_ctim),
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .type = silt_type_of(st->st_mode),
        .nlink = (uint32_t)st->st_nlink,
    };
}

/* The file is reopened for reading; if it was replaced meanwhile, the new one's type is reported.
 * An unreadable file has no type. */
static void find_type(struct silt_task *t, struct silt_worker_meta *m, mode_t mode)
{
    silt_auto_fd fd = -1;
    struct stat st;
    struct silt_error ignored;
    if (!S_ISREG(mode)) {
        (void)snprintf(m->mime, sizeof(m->mime), "%s", silt_mime_of_mode(mode));
        return;
    }
    if (silt_task_open_file(t, O_RDONLY, &fd, &st, &ignored) < 0)
        return;
    silt_meta_of(&st, m);
    if (silt_mime_find(t->path, fd, m->mime, &ignored) < 0)
        m->mime[0] = 0;
}

int silt_task_stat(struct silt_task *t, struct silt_error *e)
{
    silt_auto_fd fd = -1;
    struct stat st;
    struct silt_worker_meta meta;
    if (silt_task_open(t, t->path,
                       O_PATH | (silt_task_has(t, SILT_WORKER_NOFOLLOW) ? O_NOFOLLOW : 0), 0, &fd,
                       e)
        < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return silt_fail_errno(e, "stat %s", t->path);
    silt_meta_of(&st, &meta);
    if (silt_task_has(t, SILT_WORKER_MIME))
        find_type(t, &meta, st.st_mode);
    (void)silt_task_say(t, SILT_WORKER_SAY_META, SILT_WORKER_LAST,
                        (silt_slice){(const char *)&meta, sizeof(meta)}, (silt_slice){NULL, 0});
    return 0;
}
