/* SPDX-License-Identifier: Apache-2.0 */
/* watch: tells what happens below a path, by inotify. Links are not followed, so there are no
 * loops. What cannot be seen is told: the kernel's queue overflows, or it gives no more watches. */
#include "worker/ops.h"
#include "worker/place.h"
#include "worker/teller.h"
#include "worker/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
    MOVE_WAIT_MS = 10, /* the second half of a rename follows at once */
    ASK_EVERY = 64,    /* folders between two looks at siltd */
};

struct lookout {
    struct silt_task *task; /* borrowed */
    int inotify;
    bool over; /* the last event was told */
    struct silt_tree tree;
    struct silt_folder *moving; /* was moved from its place; where to, the next event may tell */
    uint32_t cookie;
    uint32_t ours; /* cookie: a file of ours takes the place of another */
    int file_wd;   /* a single file is watched: its watch */
    struct silt_teller teller;
};

static void end(struct lookout *l)
{
    silt_teller_say(&l->teller, SILT_WATCH_GONE, l->tree.root != NULL, l->task->path);
    silt_teller_flush(&l->teller, SILT_WORKER_LAST);
    l->over = true;
}

/* The absolute path, as it was asked for, of a name in a folder. One that is too long cannot be
 * told. */
static bool whole_path(struct lookout *l, const struct silt_folder *f, const char *name,
                       char out[SILT_WORKER_PATH_MAX + 1])
{
    char below[SILT_WORKER_PATH_MAX + 1];
    const char *root = l->task->path;
    size_t len = strlen(root);
    while (len > 0 && root[len - 1] == '/')
        len--;
    if (!silt_tree_path(f, name, below) || len + 1 + strlen(below) > SILT_WORKER_PATH_MAX) {
        silt_teller_tell_limit(&l->teller, root);
        return false;
    }
    memcpy(out, root, len);
    if (below[0] != 0 || len == 0)
        out[len++] = '/';
    memcpy(out + len, below, strlen(below) + 1);
    return true;
}

/* ---- following ---- */

static uint32_t mask_of(const struct lookout *l, bool is_root)
{
    uint32_t wanted = l->task->ask.limit;
    uint32_t mask = IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_EXCL_UNLINK;
    mask |= (wanted & SILT_WATCH_MODIFY) != 0 ? IN_MODIFY | IN_CLOSE_WRITE : 0;
    mask |= (wanted & SILT_WATCH_DELETE) != 0 ? IN_DELETE : 0;
    mask |= (wanted & SILT_WATCH_ATTRIB) != 0 ? IN_ATTRIB : 0;
    return mask | (is_root ? IN_DELETE_SELF | IN_MOVE_SELF : 0);
}

/* By descriptor: the name may lead elsewhere by now. */
static int add_watch(struct lookout *l, int fd, uint32_t mask)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return inotify_add_watch(l->inotify, path, mask);
}

static void follow(struct lookout *l, struct silt_folder *parent, int dir, const char *name,
                   bool is_new)
{
    char path[SILT_WORKER_PATH_MAX + 1];
    if (!whole_path(l, parent, name, path) || silt_teller_is_excluded(&l->teller, path))
        return;
    silt_auto_fd fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return; /* it is gone again, which is told too, or it is no folder */
    int wd = add_watch(l, fd, mask_of(l, false));
    if (wd < 0 && (errno == ENOSPC || errno == ENOMEM))
        silt_teller_tell_limit(&l->teller, path);
    if (wd < 0 || silt_tree_find(&l->tree, wd) != NULL)
        return;
    struct silt_folder *f = silt_tree_add(&l->tree, parent, name, wd);
    if (f == NULL) {
        (void)inotify_rm_watch(l->inotify, wd);
        silt_teller_tell_limit(&l->teller, path);
        return;
    }
    f->is_new = is_new;
    silt_tree_defer(&l->tree, f);
}

static bool is_folder(int dir, const struct dirent *d)
{
    struct stat st;
    if (d->d_type != DT_UNKNOWN)
        return d->d_type == DT_DIR;
    return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* A folder below the root, without a link on the way. */
static int open_folder(struct lookout *l, const struct silt_folder *f)
{
    char below[SILT_WORKER_PATH_MAX + 1];
    struct silt_error e;
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    silt_auto_fd root = -1;
    if (!silt_tree_path(f, NULL, below)
        || silt_task_open(l->task, l->task->path, O_PATH | O_DIRECTORY, 0, &root, &e) < 0)
        return -1;
    return (int)syscall(SYS_openat2, root, below[0] != 0 ? below : ".", &how, sizeof(how));
}

/* What is in a new folder already came before its watch: it is told as created. */
static void read_folder(struct lookout *l, struct silt_folder *f)
{
    char path[SILT_WORKER_PATH_MAX + 1];
    int fd = open_folder(l, f);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        silt_close_fd(&fd);
        return;
    }
    for (const struct dirent *d; (d = readdir(dir)) != NULL && !l->task->gone;) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0
            || silt_place_is_temp(d->d_name))
            continue;
        bool is_dir = is_folder(fd, d);
        if (f->is_new && whole_path(l, f, d->d_name, path))
            silt_teller_tell(&l->teller, SILT_WATCH_CREATE, is_dir, path);
        if (is_dir)
            follow(l, f, fd, d->d_name, f->is_new);
    }
    (void)closedir(dir);
}

static void read_unread(struct lookout *l)
{
    struct silt_folder *f;
    for (unsigned n = 0; (f = silt_tree_next_unread(&l->tree)) != NULL; n++) {
        if (n % ASK_EVERY == 0 && !silt_task_is_wanted(l->task))
            return;
        read_folder(l, f);
    }
}

static int begin(struct lookout *l, struct silt_error *e)
{
    struct silt_task *t = l->task;
    silt_auto_fd fd = -1;
    struct stat st;
    if (silt_task_open(t, t->path, O_PATH, 0, &fd, e) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return silt_fail_errno(e, "stat %s", t->path);
    l->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (l->inotify < 0)
        return silt_fail_errno(e, "create an inotify instance");
    int wd = add_watch(l, fd, mask_of(l, true) | (S_ISDIR(st.st_mode) ? 0 : IN_ATTRIB));
    if (wd < 0 && errno == ENOSPC)
        return silt_fail(e, SILT_LIMIT, "watch %s: the sandbox has no inotify watches left",
                         t->path);
    if (wd < 0)
        return silt_fail_errno(e, "watch %s", t->path);
    l->file_wd = wd;
    if (!S_ISDIR(st.st_mode))
        return 0; /* a single file: the tree stays empty */
    struct silt_folder *root = silt_tree_add(&l->tree, NULL, "", wd);
    if (root == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for a watch");
    if (silt_task_has(t, SILT_WORKER_RECURSIVE))
        silt_tree_defer(&l->tree, root);
    read_unread(l);
    return 0;
}

static void ignore(void *context, int wd)
{
    (void)context;
    (void)wd;
}

static void forget(struct lookout *l)
{
    silt_close_fd(&l->inotify);
    l->moving = NULL;
    if (l->tree.root != NULL)
        silt_tree_remove(&l->tree, l->tree.root, ignore, NULL);
}

/* Events are missing: which folders there are is not known any more, so all is read anew. It is
 * told afterwards, when whoever looks for himself misses nothing more. */
static void begin_anew(struct lookout *l)
{
    struct silt_error e;
    forget(l);
    if (begin(l, &e) == 0)
        silt_teller_say(&l->teller, SILT_WATCH_OVERFLOW, true, l->task->path);
    else
        end(l);
}

/* ---- what the kernel tells ---- */

static void on_unfollow(void *context, int wd)
{
    struct lookout *l = context;
    (void)inotify_rm_watch(l->inotify, wd);
}

static void drop_moving(struct lookout *l)
{
    if (l->moving != NULL)
        silt_tree_remove(&l->tree, l->moving, on_unfollow, l);
    l->moving = NULL;
}

static void on_folder_from(struct lookout *l, struct silt_folder *f, const struct inotify_event *v)
{
    drop_moving(l);
    l->moving = silt_tree_child(f, v->name);
    l->cookie = v->cookie;
}

/* A folder that was moved here from another place of the tree keeps its watches, so that nothing is
 * missed. */
static void on_folder_here(struct lookout *l, struct silt_folder *f, const struct inotify_event *v,
                           const char *path)
{
    bool was_moved = (v->mask & IN_MOVED_TO) != 0;
    struct silt_folder *m = l->moving;
    if (was_moved && m != NULL && l->cookie == v->cookie) {
        if (!silt_teller_is_excluded(&l->teller, path)
            && silt_tree_move(&l->tree, m, f, v->name) != NULL)
            l->moving = NULL;
        drop_moving(l);
        return;
    }
    silt_auto_fd dir = open_folder(l, f);
    if (dir >= 0)
        follow(l, f, dir, v->name, !was_moved);
}

static void tell_all(struct lookout *l, uint32_t mask, const char *path)
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
static bool is_ours(struct lookout *l, const struct inotify_event *v)
{
    bool is_temp = v->len > 0 && silt_place_is_temp(v->name);
    if (is_temp && (v->mask & (IN_MOVED_FROM | IN_ISDIR)) == IN_MOVED_FROM
        && silt_place_is_draft(v->name))
        l->ours = v->cookie;
    return is_temp || ((v->mask & IN_MOVED_TO) != 0 && v->cookie == l->ours);
}

static void on_event(struct lookout *l, const struct inotify_event *v)
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
        if (l->moving != NULL)
            drop_moving(l); /* it may lie below */
        f = silt_tree_find(&l->tree, v->wd);
        if (f != NULL)
            silt_tree_remove(&l->tree, f, on_unfollow, l);
        return;
    }
    if (is_ours(l, v) || !whole_path(l, f, v->len > 0 ? v->name : NULL, path))
        return;
    if (v->len > 0 || f == l->tree.root)
        tell_all(l, v->mask | (v->len == 0 ? IN_ISDIR : 0), path);
    if ((v->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) != 0 && f == l->tree.root) {
        end(l);
        return;
    }
    if ((v->mask & IN_ISDIR) == 0 || v->len == 0 || !silt_task_has(l->task, SILT_WORKER_RECURSIVE))
        return;
    if ((v->mask & IN_MOVED_FROM) != 0)
        on_folder_from(l, f, v);
    if ((v->mask & (IN_CREATE | IN_MOVED_TO)) != 0)
        on_folder_here(l, f, v, path);
}

/* Another file has the name now, as after a write that replaces: it is watched instead. */
static bool follow_name(struct lookout *l)
{
    struct silt_error e;
    silt_auto_fd fd = -1;
    if (silt_task_open(l->task, l->task->path, O_PATH, 0, &fd, &e) < 0)
        return false;
    int wd = add_watch(l, fd, mask_of(l, true) | IN_ATTRIB);
    if (wd < 0)
        return false;
    l->file_wd = wd;
    return true;
}

/* A file whose name is gone lives on while somebody has it open; who watches a name wants to know.
 */
static void on_file_event(struct lookout *l, const struct inotify_event *v)
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
static bool read_events(struct lookout *l)
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

static void serve(struct lookout *l)
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
                read_unread(l);
        } else {
            drop_moving(l);
        }
        if (!l->over)
            silt_teller_flush(&l->teller, 0);
    }
}

int silt_task_watch(struct silt_task *t, struct silt_error *e)
{
    struct lookout *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for a watch");
    l->task = t;
    l->inotify = -1;
    int done = silt_teller_init(&l->teller, t, e) < 0 || begin(l, e) < 0 ? -1 : 0;
    if (done == 0) {
        silt_teller_say(&l->teller, SILT_WATCH_READY, l->tree.root != NULL, t->path);
        silt_teller_flush(&l->teller, 0);
        serve(l);
    }
    forget(l);
    silt_teller_fini(&l->teller);
    free(l);
    return done;
}
