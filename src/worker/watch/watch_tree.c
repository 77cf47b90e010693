/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/watch/watch_tree.h"
#include "worker/path_at.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { ASK_EVERY = 64 }; /* directories between two checks whether siltd is gone */

/* The absolute path, as requested, of a name in a directory. A path that is too long cannot be
 * reported. */
bool silt_watch_tree_path(struct silt_watch_tree *l, const struct silt_directory *f,
                          const char *name, char out[SILT_WORKER_PATH_MAX + 1])
{
    char below[SILT_WORKER_PATH_MAX + 1];
    const char *root = l->task->path;
    size_t len = strlen(root);
    while (len > 0 && root[len - 1] == '/')
        len--;
    if (!silt_tree_path(f, name, below) || len + 1 + strlen(below) > SILT_WORKER_PATH_MAX) {
        silt_watch_filter_tell_limit(&l->teller, root);
        return false;
    }
    memcpy(out, root, len);
    if (below[0] != 0 || len == 0)
        out[len++] = '/';
    memcpy(out + len, below, strlen(below) + 1);
    return true;
}

uint32_t silt_watch_tree_mask(const struct silt_watch_tree *l, bool is_root)
{
    uint32_t wanted = l->task->ask.limit;
    uint32_t mask = IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_EXCL_UNLINK;
    mask |= (wanted & SILT_WATCH_MODIFY) != 0 ? IN_MODIFY | IN_CLOSE_WRITE : 0;
    mask |= (wanted & SILT_WATCH_DELETE) != 0 ? IN_DELETE : 0;
    mask |= (wanted & SILT_WATCH_ATTRIB) != 0 ? IN_ATTRIB : 0;
    return mask | (is_root ? IN_DELETE_SELF | IN_MOVE_SELF : 0);
}

/* By descriptor: the name may lead elsewhere by now. */
int silt_watch_tree_add(struct silt_watch_tree *l, int fd, uint32_t mask)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return inotify_add_watch(l->inotify, path, mask);
}

/* It is in this place now, whatever events about its move are still to come. */
static void relocate(struct silt_watch_tree *l, struct silt_directory *f,
                     struct silt_directory *parent, const char *name)
{
    if (f->parent == NULL)
        return; /* the root, through a mount */
    if (l->moving == f)
        l->moving = NULL;
    if (f->parent != parent || strcmp(f->name, name) != 0) {
        l->repaired = true;
        silt_watch_tree_mark(l, parent);
        f = silt_tree_move(&l->tree, f, parent, name);
    }
    if (f != NULL)
        f->lost = false;
    else
        l->stale = true;
}

void silt_watch_tree_follow(struct silt_watch_tree *l, struct silt_directory *parent, int dir,
                            const char *name, bool is_new)
{
    char path[SILT_WORKER_PATH_MAX + 1];
    if (!silt_watch_tree_path(l, parent, name, path)
        || silt_watch_filter_is_excluded(&l->teller, path))
        return;
    silt_auto_fd fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return; /* it is gone again, which is reported too, or it is not a directory */
    int wd = silt_watch_tree_add(l, fd, silt_watch_tree_mask(l, false));
    if (wd < 0 && (errno == ENOSPC || errno == ENOMEM))
        silt_watch_filter_tell_limit(&l->teller, path);
    if (wd < 0)
        return;
    struct silt_directory *f = silt_tree_find(&l->tree, wd);
    if (f != NULL) {
        relocate(l, f, parent, name);
        return;
    }
    f = silt_tree_add(&l->tree, parent, name, wd);
    if (f == NULL) {
        (void)inotify_rm_watch(l->inotify, wd);
        silt_watch_filter_tell_limit(&l->teller, path);
        return;
    }
    f->is_new = is_new;
    silt_tree_defer(&l->tree, f);
}

static bool is_directory(int dir, const struct dirent *d)
{
    struct stat st;
    if (d->d_type != DT_UNKNOWN)
        return d->d_type == DT_DIR;
    return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Opens a directory below the root without following links. */
static int open_below(struct silt_watch_tree *l, const struct silt_directory *f)
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

/* The kernel returns the same watch descriptor for the same directory, so another one of that name
 * is detected. */
int silt_watch_tree_open(struct silt_watch_tree *l, struct silt_directory *f)
{
    silt_auto_fd fd = open_below(l, f);
    int wd = fd >= 0 ? silt_watch_tree_add(l, fd, silt_watch_tree_mask(l, f == l->tree.root)) : -1;
    if (wd == f->wd)
        return silt_take_fd(&fd);
    if (wd >= 0 && silt_tree_find(&l->tree, wd) == NULL)
        (void)inotify_rm_watch(l->inotify, wd);
    l->stale = true;
    silt_watch_tree_mark(l, f);
    return -1;
}

/* What a new directory already contains came before its watch: it is reported as created. */
void silt_watch_tree_read(struct silt_watch_tree *l, struct silt_directory *f, int fd, bool is_new)
{
    char path[SILT_WORKER_PATH_MAX + 1];
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        silt_close_fd(&fd);
        return;
    }
    for (const struct dirent *d; (d = readdir(dir)) != NULL && !l->task->gone;) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0
            || silt_path_at_is_temp(d->d_name))
            continue;
        bool is_dir = is_directory(fd, d);
        if (f->is_new && silt_watch_tree_path(l, f, d->d_name, path))
            silt_watch_filter_tell(&l->teller, SILT_WATCH_CREATE, is_dir, path);
        if (is_dir)
            silt_watch_tree_follow(l, f, fd, d->d_name, is_new);
    }
    (void)closedir(dir);
}

static void read_directory(struct silt_watch_tree *l, struct silt_directory *f)
{
    int fd = silt_watch_tree_open(l, f);
    if (fd < 0)
        return;
    silt_watch_tree_read(l, f, fd, f->is_new);
    f->is_new = false;
}

void silt_watch_tree_read_unread(struct silt_watch_tree *l)
{
    struct silt_directory *f;
    for (unsigned n = 0; (f = silt_tree_next_unread(&l->tree)) != NULL; n++) {
        if (n % ASK_EVERY == 0 && !silt_task_is_wanted(l->task))
            return;
        read_directory(l, f);
    }
}

int silt_watch_tree_begin(struct silt_watch_tree *l, struct silt_error *e)
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
    int wd = silt_watch_tree_add(
        l, fd, silt_watch_tree_mask(l, true) | (S_ISDIR(st.st_mode) ? 0 : IN_ATTRIB));
    if (wd < 0 && errno == ENOSPC)
        return silt_fail(e, SILT_LIMIT, "watch %s: the sandbox has no inotify watches left",
                         t->path);
    if (wd < 0)
        return silt_fail_errno(e, "watch %s", t->path);
    l->file_wd = wd;
    if (!S_ISDIR(st.st_mode))
        return 0; /* a single file: the tree stays empty */
    struct silt_directory *root = silt_tree_add(&l->tree, NULL, "", wd);
    if (root == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for a watch");
    if (silt_task_has(t, SILT_WORKER_RECURSIVE))
        silt_tree_defer(&l->tree, root);
    silt_watch_tree_read_unread(l);
    return 0;
}

static void ignore(void *context, int wd)
{
    (void)context;
    (void)wd;
}

void silt_watch_tree_forget(struct silt_watch_tree *l)
{
    silt_close_fd(&l->inotify);
    l->moving = NULL;
    l->dirty_count = 0;
    l->events = 0;
    l->stale = l->repaired = false;
    if (l->tree.root != NULL)
        silt_tree_remove(&l->tree, l->tree.root, ignore, NULL);
}

static void on_unfollow(void *context, int wd)
{
    struct silt_watch_tree *l = context;
    (void)inotify_rm_watch(l->inotify, wd);
}

void silt_watch_tree_unfollow(struct silt_watch_tree *l, struct silt_directory *f)
{
    for (const struct silt_directory *up = l->moving; up != NULL; up = up->parent)
        if (up == f)
            l->moving = NULL; /* the moved directory is below it, or is it */
    silt_tree_remove(&l->tree, f, on_unfollow, l);
}
