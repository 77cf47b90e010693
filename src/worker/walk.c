/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

enum {
    LEVELS_MAX = SILT_WORKER_PATH_MAX / 2 + 1, /* the maximum number of names in a path */
    OPEN_MAX = 48,                             /* directories held open; others are reopened */
    LOOK_EVERY = 512, /* items between checks whether siltd is still there */
};

struct level {
    DIR *directory; /* owned; NULL: closed for now */
    long at;        /* position to continue at, if closed */
    dev_t dev;
    ino_t ino;
    size_t path_len; /* of the directory */
};

static struct {
    const struct silt_walk *w;
    size_t depth; /* levels in use */
    unsigned count;
    struct level levels[LEVELS_MAX + 1];
    char path[SILT_WORKER_PATH_MAX + 1];
} now;

static struct level *top(void)
{
    return &now.levels[now.depth - 1];
}

/* Takes fd. */
static int push(int fd, size_t path_len, struct silt_error *e)
{
    struct stat st;
    struct level *l = &now.levels[now.depth];
    DIR *d = fstat(fd, &st) == 0 ? fdopendir(fd) : NULL;
    if (d == NULL) {
        (void)silt_fail_errno(e, "open %s", now.path);
        silt_close_fd(&fd);
        return -1;
    }
    struct level *far = now.depth >= OPEN_MAX ? l - OPEN_MAX : NULL;
    if (far != NULL && far->directory != NULL) { /* otherwise it was closed on an earlier descent */
        far->at = telldir(far->directory);
        (void)closedir(far->directory);
        far->directory = NULL;
    }
    *l = (struct level){.directory = d, .dev = st.st_dev, .ino = st.st_ino, .path_len = path_len};
    now.depth++;
    return 0;
}

/* Reopens the parent directory, which must be the same one as before. */
static int reopen(struct level *l, int below, struct silt_error *e)
{
    struct stat st;
    silt_auto_fd fd = silt_open_at(below, "..", O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return silt_fail_errno(e, "open %s", now.path);
    if (st.st_dev != l->dev || st.st_ino != l->ino)
        return silt_fail(e, SILT_CONFLICT, "a directory above %s was moved meanwhile", now.path);
    l->directory = fdopendir(fd);
    if (l->directory == NULL)
        return silt_fail_errno(e, "open %s", now.path);
    (void)silt_take_fd(&fd);
    seekdir(l->directory, l->at);
    return 0;
}

static int pop(struct silt_error *e)
{
    struct level *l = top(), *above = l - 1;
    int answer = 0;
    if (now.depth > 1 && above->directory == NULL)
        answer = reopen(above, dirfd(l->directory), e);
    (void)closedir(l->directory);
    now.path[l->path_len] = 0;
    now.depth--;
    if (answer < 0 || now.depth == 0 || now.w->leave == NULL)
        return answer;
    struct silt_walk_item item = {
        .dir = dirfd(above->directory),
        .name = now.path + above->path_len + (above->path_len > 0),
        .path = {now.path, l->path_len},
    };
    return now.w->leave(now.w->ctx, &item, e);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int extend(const char *name, size_t *ret_len, struct silt_error *e)
{
    size_t at = top()->path_len, len = strlen(name);
    if (at + 1 + len > SILT_WORKER_PATH_MAX) {
        errno = ENAMETOOLONG;
        return silt_fail_errno(e, "open %s/%s", now.path, name);
    }
    if (at > 0)
        now.path[at++] = '/';
    memcpy(now.path + at, name, len + 1);
    *ret_len = at + len;
    return 0;
}

static bool is_exchanged(int sys)
{
    return sys == ENOENT || sys == ENOTDIR || sys == ELOOP;
}

static int visit(const char *name, struct silt_error *e)
{
    struct stat st;
    size_t len;
    struct silt_walk_item item = {.dir = dirfd(top()->directory), .name = name, .st = &st};
    if (extend(name, &len, e) < 0)
        return -1;
    if (fstatat(item.dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return is_exchanged(errno) ? 0 : silt_fail_errno(e, "stat %s", now.path);
    item.path = (silt_slice){now.path, len};
    int into = now.w->enter(now.w->ctx, &item, e);
    if (into <= 0 || !S_ISDIR(st.st_mode))
        return into < 0 ? -1 : 0;
    int fd = silt_open_at(item.dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0)
        return is_exchanged(errno) ? 0 : silt_fail_errno(e, "open %s", now.path);
    return push(fd, len, e);
}

static int step(struct silt_error *e)
{
    errno = 0;
    struct dirent *d = readdir(top()->directory);
    if (d == NULL && errno != 0) {
        now.path[top()->path_len] = 0;
        return silt_fail_errno(e, "read %s", now.path);
    }
    if (d == NULL)
        return pop(e);
    if (++now.count % LOOK_EVERY == 0 && !silt_task_is_wanted(now.w->task))
        return silt_fail(e, SILT_GONE, "nobody waits any more");
    return is_dots(d->d_name) ? 0 : visit(d->d_name, e);
}

static void close_all(void)
{
    while (now.depth > 0) {
        if (top()->directory != NULL)
            (void)closedir(top()->directory);
        now.depth--;
    }
}

int silt_walk_run(const struct silt_walk *w, int root, struct silt_error *e)
{
    int answer;
    now.w = w;
    now.depth = 0;
    now.count = 0;
    now.path[0] = 0;
    answer = push(root, 0, e);
    while (answer == 0 && now.depth > 0)
        answer = step(e);
    close_all();
    return answer;
}
