/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ops.h"
#include "worker/path_at.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { DIRECTORIES_MAX = 8192 }; /* limit of parents to check, in case others move them meanwhile */

struct move {
    struct silt_task *task;
    struct silt_path_at from, to;
};

static int fail(const struct move *m, struct silt_error *e)
{
    return silt_fail_errno(e, "move %s to %s", m->task->path, m->task->to);
}

/* If the destination is a directory, or a link to one, the source goes into it. */
static int find_inside(struct move *m, struct silt_error *e)
{
    int fd;
    if (silt_task_open(m->task, m->task->to, O_PATH | O_DIRECTORY, 0, &fd, e) < 0)
        return 0;
    m->to.dir = fd;
    m->to.slash = false;
    memcpy(m->to.name, m->from.name, sizeof(m->to.name));
    if (fstatat(fd, m->to.name, &m->to.st, AT_SYMLINK_NOFOLLOW) < 0)
        m->to.st.st_mode = 0;
    return 1;
}

static int find(struct move *m, struct silt_error *e)
{
    if (silt_path_at_find(m->task, m->task->path, 0, &m->from, e) < 0)
        return -1;
    errno = ENOENT;
    if (silt_path_at_is_empty(&m->from))
        return fail(m, e);
    errno = ENOTDIR;
    if (m->from.slash && !S_ISDIR(m->from.st.st_mode))
        return fail(m, e);
    if (find_inside(m, e) == 0 && silt_path_at_find(m->task, m->task->to, 0, &m->to, e) < 0)
        return -1;
    errno = ENOTDIR;
    return m->to.slash && !S_ISDIR(m->from.st.st_mode) ? fail(m, e) : 0;
}

static bool is_same_directory(int a, int b)
{
    struct stat one, two;
    return fstat(a, &one) == 0 && fstat(b, &two) == 0 && one.st_dev == two.st_dev
           && one.st_ino == two.st_ino;
}

/* rename(2) does nothing if both are the same file; mv refuses, or removes one of two hard links.
 * 1: done. */
static int move_onto_itself(const struct move *m, struct silt_error *e)
{
    const struct stat *a = &m->from.st, *b = &m->to.st;
    if (silt_path_at_is_empty(&m->to) || a->st_dev != b->st_dev || a->st_ino != b->st_ino)
        return 0;
    if (strcmp(m->from.name, m->to.name) == 0 && is_same_directory(m->from.dir, m->to.dir)) {
        (void)silt_fail(e, SILT_INVALID, "move %s to %s: they are the same file", m->task->path,
                        m->task->to);
        e->sys = EINVAL;
        return -1;
    }
    if (S_ISDIR(a->st_mode))
        return 0;
    return unlinkat(m->from.dir, m->from.name, 0) < 0 ? fail(m, e) : 1;
}

/* ---- to another file system ---- */

/* Copying a directory into itself would not end; rename reports EXDEV before it checks that. */
static int check_not_inside(const struct move *m, struct silt_error *e)
{
    struct stat st, last = {0};
    silt_auto_fd at = silt_open_at(m->to.dir, ".", O_PATH | O_DIRECTORY, 0);
    for (int i = 0; i < DIRECTORIES_MAX; i++) {
        if (at < 0 || fstat(at, &st) < 0)
            return fail(m, e);
        if (st.st_dev == last.st_dev && st.st_ino == last.st_ino)
            return 0; /* the root */
        errno = EINVAL;
        if (st.st_dev == m->from.st.st_dev && st.st_ino == m->from.st.st_ino)
            return fail(m, e);
        last = st;
        int above = silt_open_at(at, "..", O_PATH | O_DIRECTORY, 0);
        silt_close_fd(&at);
        at = above;
    }
    errno = ELOOP;
    return fail(m, e);
}

/* Fails as rename would, before everything is copied in vain. */
static int check_kinds(const struct move *m)
{
    bool from = S_ISDIR(m->from.st.st_mode), to = S_ISDIR(m->to.st.st_mode);
    if (silt_path_at_is_empty(&m->to) || from == to)
        return 0;
    errno = to ? EISDIR : ENOTDIR;
    return -1;
}

static int move_by_copy(const struct move *m, struct silt_error *e)
{
    char temp[SILT_TEMP_SIZE];
    struct silt_error ignored;
    uint64_t count = 0;
    if (check_kinds(m) < 0)
        return fail(m, e);
    if (S_ISDIR(m->from.st.st_mode) && check_not_inside(m, e) < 0)
        return -1;
    silt_path_at_temp(temp);
    int answer = silt_copy_tree(m->task, m->from.dir, m->from.name, m->to.dir, temp, e);
    m->task->finishing = true;
    if (answer == 0 && renameat(m->to.dir, temp, m->to.dir, m->to.name) < 0)
        answer = fail(m, e);
    else if (answer < 0)
        (void)silt_because(e, "move %s to %s", m->task->path, m->task->to);
    if (answer < 0) {
        (void)silt_delete_tree(m->task, m->to.dir, temp, &count, &ignored);
        return -1;
    }
    return silt_delete_tree(m->task, m->from.dir, m->from.name, &count, e);
}

/* ---- the operation ---- */

static int run(struct move *m, struct silt_error *e)
{
    if (find(m, e) < 0)
        return -1;
    int done = move_onto_itself(m, e);
    if (done != 0)
        return done < 0 ? -1 : 0;
    if (renameat(m->from.dir, m->from.name, m->to.dir, m->to.name) == 0)
        return 0;
    return errno == EXDEV ? move_by_copy(m, e) : fail(m, e);
}

int silt_task_move(struct silt_task *t, struct silt_error *e)
{
    struct silt_worker_done done = {.entries = 1};
    struct move m = {.task = t, .from.dir = -1, .to.dir = -1};
    int answer = run(&m, e);
    silt_path_at_fini(&m.from);
    silt_path_at_fini(&m.to);
    if (answer == 0)
        (void)silt_task_done(t, &done);
    return answer;
}
