/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ops.h"
#include "worker/path_at.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    DEEP = 48,       /* deeper directories are moved up to the top one before they are emptied */
    DEPTH_MAX = 400, /* if they cannot be moved: one descriptor each */
    TRIES = 16,      /* for a directory that others keep filling */
    LOOK_EVERY = 256,
};

struct removal {
    struct silt_task *task;
    int top;         /* the top directory: borrowed; -1 before it is open */
    uint64_t *count; /* of deleted entries */
    uint64_t lifted;
    unsigned looks;
};

static int remove_directory(struct removal *r, int dir, const char *name, unsigned depth,
                            struct silt_error *e);

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int remove_entry(struct removal *r, int dir, const char *name, unsigned depth,
                        struct silt_error *e)
{
    if (++r->looks % LOOK_EVERY == 0 && !silt_task_is_wanted(r->task))
        return silt_fail(e, SILT_GONE, "nobody waits any more");
    if (unlinkat(dir, name, 0) == 0) {
        ++*r->count;
        return 0;
    }
    if (errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return silt_fail_errno(e, "remove %s", name);
    return remove_directory(r, dir, name, depth, e);
}

static int empty(struct removal *r, DIR *d, unsigned depth, struct silt_error *e)
{
    struct dirent *entry;
    for (errno = 0; (entry = readdir(d)) != NULL; errno = 0)
        if (!is_dots(entry->d_name) && remove_entry(r, dirfd(d), entry->d_name, depth + 1, e) < 0)
            return -1;
    return errno == 0 ? 0 : silt_fail_errno(e, "read a directory");
}

/* A tree of any depth needs at most DEEP descriptors. */
static bool lift(struct removal *r, int dir, const char *name)
{
    char temp[SILT_TEMP_SIZE];
    silt_path_at_temp(temp);
    if (silt_path_at_rename(dir, name, r->top, temp, true) < 0)
        return false;
    r->lifted++;
    return true;
}

static int empty_and_remove(struct removal *r, int dir, const char *name, DIR *d, unsigned depth,
                            struct silt_error *e)
{
    for (int tries = 0; tries < TRIES; tries++) {
        uint64_t lifted = r->lifted;
        if (empty(r, d, depth, e) < 0)
            return -1;
        if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
            ++*r->count;
            return 0;
        }
        if (errno != ENOTEMPTY)
            break;
        if (depth == 0 && r->lifted > lifted)
            tries = 0;
        rewinddir(d);
    }
    return silt_fail_errno(e, "remove %s", name);
}

static int remove_directory(struct removal *r, int dir, const char *name, unsigned depth,
                            struct silt_error *e)
{
    if (depth >= DEEP && lift(r, dir, name))
        return 0;
    if (depth >= DEPTH_MAX)
        return silt_fail(e, SILT_LIMIT, "remove %s: more than %d directories deep", name,
                         DEPTH_MAX);
    silt_auto_fd fd = silt_open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0)
        return errno == ENOENT ? 0 : silt_fail_errno(e, "open %s", name);
    DIR *d = fdopendir(fd);
    if (d == NULL)
        return silt_fail_errno(e, "open %s", name);
    if (depth == 0)
        r->top = fd;
    fd = -1; /* now owned by d */
    int answer = empty_and_remove(r, dir, name, d, depth, e);
    (void)closedir(d);
    return answer;
}

int silt_delete_tree(struct silt_task *t, int dir, const char *name, uint64_t *count,
                     struct silt_error *e)
{
    struct removal r = {.task = t, .top = -1, .count = count};
    return remove_entry(&r, dir, name, 0, e);
}

/* A link's target must exist, unless the link itself is meant: like `test -e`. */
static int check(struct silt_task *t, const struct silt_path_at *p)
{
    struct stat st;
    bool follow = !silt_task_has(t, SILT_WORKER_NOFOLLOW) && S_ISLNK(p->st.st_mode);
    errno = ENOENT;
    if (silt_path_at_is_empty(p) || (follow && fstatat(p->dir, p->name, &st, 0) < 0))
        return -1;
    errno = ENOTDIR;
    return p->slash && !S_ISDIR(p->st.st_mode) ? -1 : 0;
}

int silt_task_delete(struct silt_task *t, struct silt_error *e)
{
    struct silt_worker_done done = {0};
    silt_auto_place p = {.dir = -1};
    if (silt_path_at_find(t, t->path, 0, &p, e) < 0)
        return -1;
    if (check(t, &p) < 0)
        return silt_fail_errno(e, "remove %s", t->path);
    if (silt_task_has(t, SILT_WORKER_RECURSIVE)) {
        if (silt_delete_tree(t, p.dir, p.name, &done.entries, e) < 0)
            return silt_because(e, "remove %s", t->path);
    } else if (unlinkat(p.dir, p.name, 0) < 0) {
        return silt_fail_errno(e, "remove %s", t->path);
    } else {
        done.entries = 1;
    }
    (void)silt_task_done(t, &done);
    return 0;
}
