/* SPDX-License-Identifier: Apache-2.0 */
/* walk: walks a whole tree, parents before children, in directory order. Never follows links.
 * Memory and descriptors are bounded. Entries that vanish or are replaced during the walk are
 * skipped. It is an error when a path has more than SILT_WORKER_PATH_MAX bytes, or when a
 * directory above the walk's position is moved meanwhile. */
#pragma once

#include "worker/task.h"

#include <sys/stat.h>

struct silt_walk_item {
    int dir;               /* borrowed: the containing directory */
    const char *name;      /* in dir */
    silt_slice path;       /* below the root of the walk; NUL-terminated */
    const struct stat *st; /* from lstat */
};

/* 1: descend, if it is a directory; 0: continue; -1: stop. */
typedef int silt_walk_step(void *ctx, const struct silt_walk_item *i, struct silt_error *e);

struct silt_walk {
    struct silt_task *task; /* borrowed; the walk stops when siltd is gone */
    silt_walk_step *enter;
    silt_walk_step *leave; /* after a directory's contents; or NULL. `st` is NULL */
    void *ctx;
};

/* Takes `root`, a readable directory. Only one walk at a time. */
int silt_walk_run(const struct silt_walk *w, int root, struct silt_error *e);
