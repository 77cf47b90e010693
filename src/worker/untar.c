/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks into a folder of its own first, where the image's tar can do what it likes; only when all of
 * it is there and tar is content it goes to its place. That folder lies in one which only root can enter: what
 * somebody else put into it would come along to a place that is not theirs. */
#include "base/maker.h"
#include "worker/ops.h"
#include "worker/place.h"
#include "worker/program.h"
#include "worker/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static const char inner[] = "tar";

struct unpack {
    struct silt_task *task;
    struct silt_place place; /* of a folder that is not there yet; dir -1: it is */
    int target;              /* owned: the folder that is there; -1 */
    int base;                /* borrowed: where the temporary folder is */
    int closed;              /* owned: the temporary folder */
    int temp;                /* owned: where it is unpacked, in there */
    char name[SILT_TEMP_SIZE];
    struct silt_maker us;    /* in whose name we work */
    struct silt_worker_done done;
};

/* ---- the temporary folder ---- */

/* Inside of a folder that is there: a mount has no other place on its file system. */
static int find(struct unpack *u, struct silt_error *e)
{
    struct silt_task *t = u->task;
    unsigned how = silt_task_has(t, SILT_WORKER_PARENTS) ? SILT_PLACE_PARENTS : 0;
    if (silt_task_open(t, t->path, O_PATH | O_DIRECTORY, 0, &u->target, e) == 0) {
        u->base = u->target;
        return 0;
    }
    if (e->sys != ENOENT || silt_place_find(t, t->path, how | SILT_PLACE_FOLLOW, &u->place, e) < 0)
        return -1;
    u->base = u->place.dir;
    return 0;
}

static int make_temp(struct unpack *u, struct silt_error *e)
{
    silt_place_temp(u->name);
    u->closed = silt_place_make_closed(u->base, u->name);
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
        if (silt_program_write(p, bytes) < 0) /* 0: it has seen the end; the rest is padding */
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

/* ---- to its place ---- */

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

/* As if the user's own tar had unpacked it. */
static bool gives_away(const struct unpack *u)
{
    return (u->us.uid != 0 || u->us.gid != 0) && !silt_task_has(u->task, SILT_WORKER_OWNERS);
}

/* Looked at before anything is moved, so that a clash changes nothing. A folder takes the place of a
 * file; a file does not take the place of a folder. */
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

/* A mount inside of the target: what goes there is copied. A folder is made, and the walk goes on in it. */
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
    silt_place_temp(temp);
    answer = silt_copy_tree(u->task, i->dir, i->name, dir, temp, e);
    if (answer == 0 && silt_place_rename(dir, temp, dir, i->name, false) < 0)
        answer = silt_fail_errno(e, "%s", i->path.data);
    if (answer < 0)
        (void)unlinkat(dir, temp, 0);
    return answer;
}

static int on_merge(void *ctx, const struct silt_walk_item *i, struct silt_error *e)
{
    struct unpack *u = ctx;
    struct stat st = {0};
    bool is_folder = S_ISDIR(i->st->st_mode);
    silt_auto_fd dir = open_parent(u->target, i);
    if (dir < 0)
        return silt_fail_errno(e, "%s", i->path.data);
    if (fstatat(dir, i->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_folder && S_ISDIR(st.st_mode))
        return 1;
    if (is_folder && st.st_mode != 0 && unlinkat(dir, i->name, 0) < 0)
        return silt_fail_errno(e, "%s", i->path.data);
    if (silt_place_rename(i->dir, i->name, dir, i->name, is_folder) == 0)
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
    u->task->finishing = true; /* what has been begun to move is moved to the end */
    if (u->target >= 0 && walk(u, on_merge, e) < 0)
        return silt_because(e, "unpack to %s", u->task->path);
    if (u->target < 0 && gives_away(u) && fchown(u->temp, u->us.uid, u->us.gid) < 0)
        return silt_fail_errno(e, "unpack to %s", u->task->path);
    if (u->target < 0 && silt_place_rename(u->closed, inner, u->base, u->place.name, true) < 0)
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
    u->us = silt_maker_be_root();
    int answer = make_temp(u, e);
    if (answer == 0)
        answer = run_tar(u, e);
    if (answer == 0)
        answer = settle(u, e);
    u->task->finishing = true;
    if (u->closed >= 0)
        (void)silt_delete_tree(u->task, u->base, u->name, &count, &ignored);
    (void)silt_maker_be(u->us, &ignored);
    return answer;
}

int silt_task_untar(struct silt_task *t, struct silt_error *e)
{
    struct unpack u = {.task = t, .place.dir = -1, .target = -1, .base = -1, .closed = -1, .temp = -1};
    int answer = run(&u, e);
    silt_close_fd(&u.temp);
    silt_close_fd(&u.closed);
    silt_close_fd(&u.target);
    silt_place_fini(&u.place);
    if (answer == 0)
        (void)silt_task_done(t, &u.done);
    return answer;
}
