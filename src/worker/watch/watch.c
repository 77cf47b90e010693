/* SPDX-License-Identifier: Apache-2.0 */
/* watch: reports changes below a path, by inotify. Links are not followed, so there are no loops.
 * Missing events are reported: the kernel's queue overflowed, or no more watches are available. */
#include "worker/watch/watch_tree.h"
#include "worker/ops.h"
#include "worker/path_at.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

enum {
    MOVE_WAIT_MS = 10, /* the second half of a rename follows at once */
    MENDS_MAX = 16,    /* in a row, without any event */
};

static void end(struct silt_watch_tree *l)
{
    silt_watch_filter_say(&l->teller, SILT_WATCH_GONE, l->tree.root != NULL, l->task->path);
    silt_watch_filter_flush(&l->teller, SILT_WORKER_LAST);
    l->over = true;
}

/* Events are missing and the set of directories is unknown, so everything is read again. OVERFLOW
 * is reported afterwards, when a client that rescans misses nothing more. */
static void begin_anew(struct silt_watch_tree *l)
{
    struct silt_error e;
    silt_watch_tree_forget(l);
    if (silt_watch_tree_begin(l, &e) == 0)
        silt_watch_filter_say(&l->teller, SILT_WATCH_OVERFLOW, true, l->task->path);
    else
        end(l);
}

/* ---- the kernel's events ---- */

static void drop_moving(struct silt_watch_tree *l)
{
    if (l->moving != NULL)
        silt_watch_tree_unfollow(l, l->moving);
}

/* It went to a place that the tree does not have: it is searched for from where it was. */
static void lose_moving(struct silt_watch_tree *l)
{
    silt_watch_tree_mark(l, l->moving->parent);
    l->stale = l->repaired = true;
    drop_moving(l);
}

static void on_directory_from(struct silt_watch_tree *l, const struct inotify_event *v)
{
    drop_moving(l);
    const struct silt_directory *f = silt_tree_find(&l->tree, v->wd); /* it may have been below */
    l->moving = f != NULL ? silt_tree_child(f, v->name) : NULL;
    l->cookie = v->cookie;
}

/* A directory moved here from elsewhere in the tree keeps its watches, so no event is missed. */
static void on_directory_here(struct silt_watch_tree *l, struct silt_directory *f,
                              const struct inotify_event *v, const char *path)
{
    bool was_moved = (v->mask & IN_MOVED_TO) != 0;
    struct silt_directory *m = l->moving;
    if (was_moved && m != NULL && l->cookie == v->cookie) {
        if (silt_watch_filter_is_excluded(&l->teller, path))
            drop_moving(l);
        else if (silt_tree_move(&l->tree, m, f, v->name) != NULL)
            l->moving = NULL;
        else
            lose_moving(l);
        return;
    }
    silt_auto_fd dir = silt_watch_tree_open(l, f);
    if (dir >= 0)
        silt_watch_tree_follow(l, f, dir, v->name, true);
}

static void tell_all(struct silt_watch_tree *l, uint32_t mask, const char *path)
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
            silt_watch_filter_tell(&l->teller, rows[i].what, (mask & IN_ISDIR) != 0, path);
}

/* Temporary files of our own operations are not reported: the file they write appears, or is
 * modified, once it is complete (write.c takes care of that). */
static bool is_ours(struct silt_watch_tree *l, const struct inotify_event *v)
{
    bool is_temp = v->len > 0 && silt_path_at_is_temp(v->name);
    if (is_temp && (v->mask & (IN_MOVED_FROM | IN_ISDIR)) == IN_MOVED_FROM
        && silt_path_at_is_draft(v->name))
        l->ours = v->cookie;
    return is_temp || ((v->mask & IN_MOVED_TO) != 0 && v->cookie == l->ours);
}

static void on_event(struct silt_watch_tree *l, const struct inotify_event *v)
{
    struct silt_directory *f = silt_tree_find(&l->tree, v->wd);
    char path[SILT_WORKER_PATH_MAX + 1];
    if (f == NULL)
        return; /* no longer followed */
    if ((v->mask & IN_IGNORED) != 0) {
        if (f == l->tree.root) {
            end(l);
            return;
        }
        silt_watch_tree_unfollow(l, f);
        return;
    }
    if (is_ours(l, v) || !silt_watch_tree_path(l, f, v->len > 0 ? v->name : NULL, path))
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
        silt_watch_tree_mark(l, f);
    if ((v->mask & IN_MOVED_FROM) != 0)
        on_directory_from(l, v);
    if ((v->mask & (IN_CREATE | IN_MOVED_TO)) != 0)
        on_directory_here(l, f, v, path);
}

/* Another file has the name now, as after a replacing write: it is watched instead. */
static bool follow_name(struct silt_watch_tree *l)
{
    struct silt_error e;
    silt_auto_fd fd = -1;
    if (silt_task_open(l->task, l->task->path, O_PATH, 0, &fd, &e) < 0)
        return false;
    int wd = silt_watch_tree_add(l, fd, silt_watch_tree_mask(l, true) | IN_ATTRIB);
    if (wd < 0)
        return false;
    l->file_wd = wd;
    return true;
}

/* An unlinked file lives on while a process has it open, but the watch is about the name. */
static void on_file_event(struct silt_watch_tree *l, const struct inotify_event *v)
{
    struct stat st;
    if (v->wd != l->file_wd)
        return; /* of the file that had the name before */
    bool is_dead = (v->mask & (IN_DELETE_SELF | IN_IGNORED)) != 0;
    if (is_dead && follow_name(l)) {
        silt_watch_filter_tell(&l->teller, SILT_WATCH_MODIFY, false, l->task->path);
        return;
    }
    bool is_gone = is_dead || (v->mask & (IN_MOVE_SELF | IN_UNMOUNT)) != 0
                   || ((v->mask & IN_ATTRIB) != 0 && stat(l->task->path, &st) < 0);
    tell_all(l, v->mask & ~(uint32_t)(IN_DELETE_SELF | (is_gone ? IN_ATTRIB : 0)), l->task->path);
    if (!is_gone)
        return;
    if ((v->mask & IN_MOVE_SELF) == 0)
        silt_watch_filter_tell(&l->teller, SILT_WATCH_DELETE, false, l->task->path);
    end(l);
}

/* False: no events. */
static bool read_events(struct silt_watch_tree *l)
{
    _Alignas(struct inotify_event) char bytes[16384];
    ssize_t n = read(l->inotify, bytes, sizeof(bytes));
    l->teller.limits_told = 0;
    for (ssize_t at = 0; at < n && !l->over && !l->task->gone;) {
        const struct inotify_event *v = (const void *)(bytes + at);
        at += (ssize_t)(sizeof(*v) + v->len);
        if ((v->mask & IN_Q_OVERFLOW) != 0) {
            begin_anew(l); /* the watch descriptors of the remaining events are stale now */
            break;
        }
        if (l->tree.root != NULL)
            on_event(l, v);
        else
            on_file_event(l, v);
    }
    return n > 0;
}

static bool is_quiet(const struct silt_watch_tree *l)
{
    struct pollfd p = {.fd = l->inotify, .events = POLLIN};
    return l->moving == NULL && poll(&p, 1, 0) == 0;
}

/* A single rename was followed correctly; if more happened at once, the reported state may be
 * outdated. */
static void look_again(struct silt_watch_tree *l)
{
    if (!silt_watch_tree_mend(l))
        begin_anew(l);
    else
        silt_watch_tree_read_unread(l);
}

/* A rescan can show that more must be rescanned, without any event. */
static void settle(struct silt_watch_tree *l)
{
    for (int n = 0; !l->over && !l->task->gone && l->dirty_count > 0 && is_quiet(l); n++) {
        if (n == MENDS_MAX) {
            begin_anew(l);
            return;
        }
        look_again(l);
    }
}

static void serve(struct silt_watch_tree *l)
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
                silt_watch_tree_read_unread(l);
        } else {
            drop_moving(l);
        }
        settle(l);
        if (!l->over)
            silt_watch_filter_flush(&l->teller, 0);
    }
}

int silt_task_watch(struct silt_task *t, struct silt_error *e)
{
    struct silt_watch_tree *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for a watch");
    l->task = t;
    l->inotify = -1;
    int done =
        silt_watch_filter_init(&l->teller, t, e) < 0 || silt_watch_tree_begin(l, e) < 0 ? -1 : 0;
    if (done == 0) {
        silt_watch_filter_say(&l->teller, SILT_WATCH_READY, l->tree.root != NULL, t->path);
        silt_watch_filter_flush(&l->teller, 0);
        serve(l);
    }
    silt_watch_tree_forget(l);
    free(l);
    return done;
}
