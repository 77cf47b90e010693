/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fs_identity.h"
#include "worker/ops.h"
#include "worker/path_at.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

/* NAMELESS is the best: if we are killed, nothing remains. NAMED where the file system does not
 * support unnamed files. IN_PLACE where no file can be created beside it (/proc, a file that is a
 * mount): not atomic. */
enum form { NAMELESS, NAMED, IN_PLACE };

enum { AHEAD = 4 << 20 };

struct draft {
    struct silt_task *task;
    struct silt_path_at place;
    enum form form;
    int fd; /* owned */
    char temp[SILT_TEMP_SIZE];
    uint64_t bytes;
    uint64_t begun; /* of these, already being written to disk */
};

static void drop(struct draft *d)
{
    if (d->form == NAMED)
        (void)unlinkat(d->place.dir, d->temp, 0);
    silt_close_fd(&d->fd);
    silt_path_at_fini(&d->place);
}

static int fail(const struct draft *d, struct silt_error *e)
{
    return silt_fail_errno(e, "write %s", d->task->path);
}

/* ---- opening ---- */

static int find(struct draft *d, struct silt_error *e)
{
    const struct silt_task *t = d->task;
    unsigned how = silt_task_has(t, SILT_WORKER_PARENTS) ? SILT_PATH_AT_PARENTS : 0;
    if (silt_path_at_find(t, t->path, how | SILT_PATH_AT_FOLLOW, &d->place, e) < 0)
        return -1;
    errno = EISDIR;
    if (d->place.slash)
        return fail(d, e);
    if (silt_path_at_is_empty(&d->place))
        return 0;
    errno = EEXIST;
    return silt_task_has(t, SILT_WORKER_NEW) ? fail(d, e)
                                             : silt_check_regular(&d->place.st, t->path, e);
}

static mode_t wanted_mode(const struct draft *d)
{
    uint32_t asked = d->task->ask.mode;
    if (!silt_path_at_is_empty(&d->place))
        return d->place.st.st_mode & 07777;
    return (asked != 0 ? asked & 07777 : 0666) & ~(mode_t)022;
}

static bool can_be_written_in_place(const struct draft *d, int sys)
{
    bool no_new_file =
        sys == EROFS || sys == EACCES || sys == EPERM || sys == ENOENT || sys == EOPNOTSUPP;
    return no_new_file && !silt_path_at_is_empty(&d->place);
}

static int open_in_place(struct draft *d)
{
    struct stat st;
    silt_auto_fd fd = silt_open_at(d->place.dir, d->place.name, O_WRONLY | O_TRUNC | O_NOFOLLOW, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    errno = ENXIO;
    return S_ISREG(st.st_mode) ? silt_take_fd(&fd) : -1;
}

static void make_draft(struct draft *d)
{
    /* never more than the final mode, since others may look meanwhile */
    mode_t mode = wanted_mode(d) & 0755;
    d->form = NAMELESS;
    d->fd = silt_open_at(d->place.dir, ".", O_TMPFILE | O_RDWR, mode);
    if (d->fd < 0
        && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT)) {
        silt_path_at_draft(d->temp);
        d->fd = silt_open_at(d->place.dir, d->temp, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, mode);
        d->form = d->fd >= 0 ? NAMED : NAMELESS;
    }
}

/* A file that replaces another finally gets its owner, and is root's until then. */
static int open_draft(struct draft *d, struct silt_error *e)
{
    struct silt_error ignored;
    struct silt_fs_identity us = silt_fs_identity_now();
    if (!silt_path_at_is_empty(&d->place))
        us = silt_fs_identity_be_root();
    make_draft(d);
    int sys = errno;
    if (!silt_path_at_is_empty(&d->place))
        (void)silt_fs_identity_be(us, &ignored);
    errno = sys;
    if (d->fd < 0 && can_be_written_in_place(d, errno)) {
        d->form = IN_PLACE;
        d->fd = open_in_place(d);
    }
    return d->fd >= 0 ? 0 : fail(d, e);
}

/* ---- filling ---- */

static int add(struct draft *d, silt_slice bytes, struct silt_error *e)
{
    while (bytes.len > 0) {
        ssize_t n = write(d->fd, bytes.data, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(d, e);
        d->bytes += (uint64_t)n;
        bytes.data += n;
        bytes.len -= (size_t)n;
    }
    return 0;
}

/* Starts writing to disk while more data comes, so that the final fsync has little to wait for. On
 * an overlay only this advice reaches the file system below; it may drop pages already written. */
static void write_ahead(struct draft *d)
{
    if (d->bytes - d->begun < AHEAD || !silt_task_has(d->task, SILT_WORKER_SYNC))
        return;
    (void)posix_fadvise(d->fd, (off_t)d->begun, (off_t)(d->bytes - d->begun), POSIX_FADV_DONTNEED);
    d->begun = d->bytes;
}

static int fill(struct draft *d, struct silt_error *e)
{
    bool last = silt_task_has(d->task, SILT_WORKER_ONLY);
    silt_slice bytes = d->task->text;
    if (add(d, bytes, e) < 0)
        return -1;
    while (!last) {
        if (silt_task_next(d->task, &bytes, &last) == 0)
            return silt_fail(e, SILT_GONE, "write %s: nobody waits any more", d->task->path);
        if (add(d, bytes, e) < 0)
            return -1;
        write_ahead(d);
    }
    return 0;
}

/* ---- publishing ---- */

/* chown clears the setuid bits, so the mode is set after it. */
static int dress(const struct draft *d, struct silt_error *e)
{
    struct stat st;
    const struct stat *old = &d->place.st;
    if (fstat(d->fd, &st) < 0)
        return fail(d, e);
    bool owned =
        silt_path_at_is_empty(&d->place) || (st.st_uid == old->st_uid && st.st_gid == old->st_gid);
    if (!owned && fchown(d->fd, old->st_uid, old->st_gid) < 0)
        return fail(d, e);
    if ((!owned || (st.st_mode & 07777) != wanted_mode(d)) && fchmod(d->fd, wanted_mode(d)) < 0)
        return fail(d, e);
    return 0;
}

static int name_it(const struct draft *d, const char *name)
{
    char path[32];
    if (linkat(d->fd, "", d->place.dir, name, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOENT && errno != EPERM) /* kernels before 6.10 */
        return -1;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", d->fd);
    return linkat(AT_FDCWD, path, d->place.dir, name, AT_SYMLINK_FOLLOW);
}

/* The name is a mount itself, as /etc/hosts can be: it keeps its inode and gets our content. */
static int pour(struct draft *d)
{
    ssize_t n;
    off_t from = 0;
    silt_auto_fd to = open_in_place(d);
    if (to < 0)
        return -1;
    do
        n = sendfile(to, d->fd, &from, 1 << 30);
    while (n > 0 || (n < 0 && errno == EINTR));
    (void)unlinkat(d->place.dir, d->temp, 0);
    d->form = IN_PLACE;
    silt_close_fd(&d->fd);
    d->fd = silt_take_fd(&to);
    return n < 0 ? -1 : 0;
}

static int replace(struct draft *d)
{
    bool fresh = silt_task_has(d->task, SILT_WORKER_NEW);
    if (d->form == NAMELESS) {
        silt_path_at_draft(d->temp);
        if (name_it(d, d->temp) < 0)
            return -1;
        d->form = NAMED;
    }
    if (silt_path_at_rename(d->place.dir, d->temp, d->place.dir, d->place.name, fresh) < 0)
        return errno == EBUSY ? pour(d) : -1;
    d->form = NAMELESS; /* nothing to remove any more */
    return 0;
}

static int publish(struct draft *d)
{
    if (d->form == NAMELESS && silt_path_at_is_empty(&d->place)) {
        if (name_it(d, d->place.name) == 0)
            return 0;
        if (errno != EEXIST || silt_task_has(d->task, SILT_WORKER_NEW))
            return -1;
    }
    return d->form == IN_PLACE ? 0 : replace(d);
}

static int sync_directory(const struct draft *d)
{
    silt_auto_fd dir = silt_open_at(d->place.dir, ".", O_RDONLY | O_DIRECTORY, 0);
    return dir >= 0 ? fsync(dir) : -1;
}

/* A file that is linked complete gives watchers a create event but no write event. Setting only its
 * modification time generates one. */
static void announce(const struct draft *d)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
    (void)utimensat(d->place.dir, d->place.name, times, AT_SYMLINK_NOFOLLOW);
}

static int finish(struct draft *d, struct silt_error *e)
{
    bool sync = silt_task_has(d->task, SILT_WORKER_SYNC);
    if (d->form != IN_PLACE && dress(d, e) < 0)
        return -1;
    if ((sync && fsync(d->fd) < 0) || publish(d) < 0)
        return fail(d, e);
    if (d->form != IN_PLACE)
        announce(d);
    return sync && sync_directory(d) < 0 ? fail(d, e) : 0;
}

/* ---- the operation ---- */

static int run(struct draft *d, struct silt_error *e)
{
    struct silt_worker_done done = {0};
    struct stat st;
    if (find(d, e) < 0 || open_draft(d, e) < 0 || fill(d, e) < 0 || finish(d, e) < 0)
        return -1;
    if (fstat(d->fd, &st) < 0)
        return fail(d, e);
    done.bytes = d->bytes;
    silt_meta_of(&st, &done.meta);
    (void)silt_task_done(d->task, &done);
    return 0;
}

int silt_task_write(struct silt_task *t, struct silt_error *e)
{
    struct draft d = {.task = t, .fd = -1, .place.dir = -1};
    int answer = run(&d, e);
    drop(&d);
    return answer;
}
