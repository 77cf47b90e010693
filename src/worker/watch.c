/* SPDX-License-Identifier: Apache-2.0 */
/* watch: tells what happens below a path, by inotify. Links are not followed, so there are no
 * loops. What cannot be seen is told: the kernel's queue overflows, or it gives no more watches. */
#include "worker/lookout.h"
#include "worker/ops.h"
#include "worker/place.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

enum {
    MOVE_WAIT_MS = 10, /* the second half of a rename follows at once */
    MENDS_MAX = 16,    /* in a row, without anything that happens */
};

static void end(struct silt_lookout *l)
{
    silt_teller_say(&l->teller, SILT_WATCH_GONE, l->tree.root != NULL, l->task->path);
    silt_teller_flush(&l->teller, SILT_WORKER_LAST);
    l->over = true;
}

/* Events are missing: which folders there are is not known any more, so all is read anew. It is
 * told afterwards, when whoever looks for himself misses nothing more. */
static void begin_anew(struct silt_lookout *l)
{
    struct silt_error e;
    silt_lookout_forget(l);
    if (silt_lookout_begin(l, &e) == 0)
        silt_teller_say(&l->teller, SILT_WATCH_OVERFLOW, true, l->task->path);
    else
        end(l);
}

/* ---- what the kernel tells ---- */

static void drop_moving(struct silt_lookout *l)
{
    if (l->moving != NULL)
        silt_lookout_unfollow(l, l->moving);
}

/* Where it went is not what the picture has: it is found again from where it was. */
static void lose_moving(struct silt_lookout *l)
{
    silt_lookout_mark(l, l->moving->parent);
    l->stale = l->repaired = true;
    drop_moving(l);
}

static void on_folder_from(struct silt_lookout *l, const struct inotify_event *v)
{
    drop_moving(l);
    const struct silt_folder *f = silt_tree_find(&l->tree, v->wd); /* it may have been below */
    l->moving = f != NULL ? silt_tree_child(f, v->name) : NULL;
    l->cookie = v->cookie;
}

/* A folder that was moved here from another place of the tree keeps its watches, so that nothing is
 * missed. */
static void on_folder_here(struct silt_lookout *l, struct silt_folder *f,
                           const struct inotify_event *v, const char *path)
{
    bool was_moved = (v->mask & IN_MOVED_TO) != 0;
    struct silt_folder *m = l->moving;
    if (was_moved && m != NULL && l->cookie == v->cookie) {
        if (silt_teller_is_excluded(&l->teller, path))
            drop_moving(l);
        else if (silt_tree_move(&l->tree, m, f, v->name) != NULL)
            l->moving = NULL;
        else
            lose_moving(l);
        return;
    }
    silt_auto_fd dir = silt_lookout_open(l, f);
    if (dir >= 0)
        silt_lookout_follow(l, f, dir, v->name, true);
}

static void tell_all(struct silt_lookout *l, uint32_t mask, const char *path)
{
    static const struct {
        uint32_t mask, what;
    } rows[] = {
        {IN_CREATE, SILT_WATCH_CREATE},
        {IN_MODIFY | IN_CLOSE_WRITE, SILT_WATCH_MODIFY},
        {IN_ATTRIB, SILT_WATCH_ATTRIB},
        {IN_DELETE | IN_DELETE_SELF, SILT_WATCH_DELETE},
        {IN_MOVED_FROM | IN_MOVE_SELF, SILT_WATCH_MOVE_FROM},
        {IN_MOVED_TO, SILT_WATCH_MOVE_TO},
    };
    for (size_t i = 0; i < SILT_COUNT(rows); i++)
        if ((mask & rows[i].mask) != 0)
            silt_teller_tell(&l->teller, rows[i].what, (mask & IN_ISDIR) != 0, path);
}

/* What our own operations have under way is nothing to tell: the file that they write appears, or
 * is modified, when it is complete (write.c sees to that). */
static bool is_ours(struct silt_lookout *l, const struct inotify_event *v)
{
    bool is_temp = v->len > 0 && silt_place_is_temp(v->name);
    if (is_temp && (v->mask & (IN_MOVED_FROM | IN_ISDIR)) == IN_MOVED_FROM
        && silt_place_is_draft(v->name))
        l->ours = v->cookie;
    return is_temp || ((v->mask & IN_MOVED_TO) != 0 && v->cookie == l->ours);
}

static void on_event(struct silt_lookout *l, const struct inotify_event *v)
{
    struct silt_folder *f = silt_tree_find(&l->tree, v->wd);
    char path[SILT_WORKER_PATH_MAX + 1];
    if (f == NULL)
        return; /* not followed any more */
    if ((v->mask & IN_IGNORED) != 0) {
        if (f == l->tree.root) {
            end(l);
            return;
        }
        silt_lookout_unfollow(l, f);
        return;
    }
    if (is_ours(l, v) || !silt_lookout_path(l, f, v->len > 0 ? v->name : NULL, path))
        return;
    if (v->len > 0 || f == l->tree.root)
        tell_all(l, v->mask | (v->len == 0 ? IN_ISDIR : 0), path);
    if ((v->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) != 0 && f == l->tree.root) {
        end(l);
        return;
    }
    if ((v->mask & IN_ISDIR) == 0 || v->len == 0 || !silt_task_has(l->task, SILT_WORKER_RECURSIVE))
        return;
    l->events++;
    if ((v->mask & (IN_MOVED_FROM | IN_MOVED_TO)) != 0)
        silt_lookout_mark(l, f);
    if ((v->mask & IN_MOVED_FROM) != 0)
        on_folder_from(l, v);
    if ((v->mask & (IN_CREATE | IN_MOVED_TO)) != 0)
        on_folder_here(l, f, v, path);
}

/* Another file has the name now, as after a write that replaces: it is watched instead. */
static bool follow_name(struct silt_lookout *l)
{
    struct silt_error e;
    silt_auto_fd fd = -1;
    if (silt_task_open(l->task, l->task->path, O_PATH, 0, &fd, &e) < 0)
        return false;
    int wd = silt_lookout_add(l, fd, silt_lookout_mask(l, true) | IN_ATTRIB);
    if (wd < 0)
        return false;
    l->file_wd = wd;
    return true;
}

/* A file whose name is gone lives on while somebody has it open; who watches a name wants to know.
 */
static void on_file_event(struct silt_lookout *l, const struct inotify_event *v)
{
    struct stat st;
    if (v->wd != l->file_wd)
        return; /* of the one that had the name before */
    bool is_dead = (v->mask & (IN_DELETE_SELF | IN_IGNORED)) != 0;
    if (is_dead && follow_name(l)) {
        silt_teller_tell(&l->teller, SILT_WATCH_MODIFY, false, l->task->path);
        return;
    }
    bool is_gone = is_dead || (v->mask & (IN_MOVE_SELF | IN_UNMOUNT)) != 0
                   || ((v->mask & IN_ATTRIB) != 0 && stat(l->task->path, &st) < 0);
    tell_all(l, v->mask & ~(uint32_t)(IN_DELETE_SELF | (is_gone ? IN_ATTRIB : 0)), l->task->path);
    if (!is_gone)
        return;
    if ((v->mask & IN_MOVE_SELF) == 0)
        silt_teller_tell(&l->teller, SILT_WATCH_DELETE, false, l->task->path);
    end(l);
}

/* False: nothing was there. */
static bool read_events(struct silt_lookout *l)
{
    _Alignas(struct inotify_event) char bytes[16384];
    ssize_t n = read(l->inotify, bytes, sizeof(bytes));
    l->teller.limits_told = 0;
    for (ssize_t at = 0; at < n && !l->over && !l->task->gone;) {
        const struct inotify_event *v = (const void *)(bytes + at);
        at += (ssize_t)(sizeof(*v) + v->len);
        if ((v->mask & IN_Q_OVERFLOW) != 0) {
            begin_anew(l); /* the numbers of the other events mean nothing now */
            break;
        }
        if (l->tree.root != NULL)
            on_event(l, v);
        else
            on_file_event(l, v);
    }
    return n > 0;
}

static bool is_quiet(const struct silt_lookout *l)
{
    struct pollfd p = {.fd = l->inotify, .events = POLLIN};
    return l->moving == NULL && poll(&p, 1, 0) == 0;
}

/* A single rename was followed well; when more happened at once, what was told may be older than
 * what is there. */
static void look_again(struct silt_lookout *l)
{
    if (!silt_lookout_mend(l))
        begin_anew(l);
    else
        silt_lookout_read_unread(l);
}

/* Looking again can show that more is to be looked at; no event need come for that. */
static void settle(struct silt_lookout *l)
{
    for (int n = 0; !l->over && !l->task->gone && l->dirty_count > 0 && is_quiet(l); n++) {
        if (n == MENDS_MAX) {
            begin_anew(l);
            return;
        }
        look_again(l);
    }
}

static void serve(struct silt_lookout *l)
{
    while (!l->over && !l->task->gone) {
        struct pollfd p[] = {{.fd = l->inotify, .events = POLLIN},
                             {.fd = l->task->sock, .events = 0}};
        int n = poll(p, 2, l->moving != NULL ? MOVE_WAIT_MS : -1);
        if (n > 0 && p[1].revents != 0) {
            l->task->gone = true;
            return;
        }
        if (n > 0 && read_events(l)) {
            if (!l->over)
                silt_lookout_read_unread(l);
        } else {
            drop_moving(l);
        }
        settle(l);
        if (!l->over)
            silt_teller_flush(&l->teller, 0);
    }
}

int silt_task_watch(struct silt_task *t, struct silt_error *e)
{
    struct silt_lookout *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for a watch");
    l->task = t;
    l->inotify = -1;
    int done = silt_teller_init(&l->teller, t, e) < 0 || silt_lookout_begin(l, e) < 0 ? -1 : 0;
    if (done == 0) {
        silt_teller_say(&l->teller, SILT_WATCH_READY, l->tree.root != NULL, t->path);
        silt_teller_flush(&l->teller, 0);
        serve(l);
    }
    silt_lookout_forget(l);
    silt_teller_fini(&l->teller);
    free(l);
    return done;
}
