/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/remove.h"
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 24 };

static void close_dir(DIR **d)
{
    if (*d != NULL)
        (void)closedir(*d);
}
#define auto_dir __attribute__((cleanup(close_dir))) DIR

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

static int open_dir(int dir, const char *name, DIR **ret, struct silt_error *e)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open %s to delete it", name);
    *ret = fdopendir(fd);
    if (*ret == NULL) {
        (void)close(fd);
        return silt_fail(e, SILT_LIMIT, "no memory to list %s", name);
    }
    return 0;
}

/* 0: deleted. -1 with errno; ENOTEMPTY: a non-empty directory. */
static int delete_simple(int dir, const char *name)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    /* A subvolume is deleted with its contents in microseconds; EINVAL and ENOTTY: not a
     * subvolume. */
    struct btrfs_ioctl_vol_args args = {0};
    size_t len = strlen(name);
    if (len >= sizeof(args.name))
        return -1;
    int saved = errno;
    memcpy(args.name, name, len);
    if (ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &args) == 0)
        return 0;
    errno = saved;
    return -1;
}

struct walk {
    int top;         /* where directories too deep in the tree are moved to */
    unsigned number; /* for the name of the next one */
};

static int empty(struct walk *w, int dir, const char *name, int depth, struct silt_error *e);

/* The name may be taken by a leftover of an earlier run, which is deleted with the others. */
static int bring_up(struct walk *w, int dir, const char *name)
{
    char deep[32];
    int moved;
    do {
        (void)snprintf(deep, sizeof(deep), ".deep-%u", w->number++);
        moved = renameat(dir, name, w->top, deep);
    } while (moved < 0 && (errno == ENOTEMPTY || errno == EEXIST));
    return moved;
}

static int delete_one(struct walk *w, int dir, const char *name, int depth, struct silt_error *e)
{
    if (delete_simple(dir, name) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return silt_fail_errno(e, "delete %s", name);
    if (depth == DEPTH_MAX) {
        if (bring_up(w, dir, name) < 0)
            return silt_fail_errno(e, "bring up %s", name);
        return 0;
    }
    if (empty(w, dir, name, depth, e) < 0)
        return -1;
    if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return silt_fail_errno(e, "delete directory %s", name);
    return 0;
}

/* Reads the directory again until it is empty: deleting while listing may skip entries. */
static int empty(struct walk *w, int dir, const char *name, int depth, struct silt_error *e)
{
    auto_dir *d = NULL;
    if (open_dir(dir, name, &d, e) < 0)
        return -1;
    bool found;
    do {
        found = false;
        rewinddir(d);
        for (struct dirent *it = readdir(d); it != NULL; it = readdir(d)) {
            if (is_dots(it->d_name))
                continue;
            if (delete_one(w, dirfd(d), it->d_name, depth + 1, e) < 0)
                return -1;
            found = true;
        }
    } while (found);
    return 0;
}

static int delete_deep(struct walk *w, struct silt_error *e)
{
    for (unsigned i = 0; i < w->number; i++) {
        char deep[32];
        (void)snprintf(deep, sizeof(deep), ".deep-%u", i);
        if (delete_one(w, w->top, deep, 0, e) < 0)
            return -1;
    }
    return 0;
}

int silt_remove(int dir, const char *name, struct silt_error *e)
{
    struct walk w = {.top = dir};
    if (delete_one(&w, dir, name, 0, e) < 0)
        return -1;
    return delete_deep(&w, e);
}

int silt_remove_all(int dir, const char *prefix, struct silt_error *e)
{
    auto_dir *d = NULL;
    if (open_dir(dir, ".", &d, e) < 0)
        return -1;
    size_t len = strlen(prefix);
    int result = 0;
    for (struct dirent *it = readdir(d); it != NULL; it = readdir(d))
        if (!is_dots(it->d_name) && strncmp(it->d_name, prefix, len) == 0
            && silt_remove(dir, it->d_name, e) < 0)
            result = -1;
    return result;
}
