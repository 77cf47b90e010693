/* SPDX-License-Identifier: Apache-2.0 */
/* walk: a whole tree, parents before what is in them, in the order of the folders. Links are never
 * followed. Memory and descriptors are bounded, whatever the tree is. What vanishes or is exchanged
 * underneath is passed over; a path of more than SILT_WORKER_PATH_MAX bytes is an error. */
#pragma once

#include "worker/task.h"

#include <sys/stat.h>

struct silt_walk_item {
    int dir;               /* borrowed: the folder that it is in */
    const char *name;      /* in it */
    silt_slice path;       /* below the root of the walk; terminated */
    const struct stat *st; /* not followed */
};

/* 1: and what is in it, if it is a folder; 0: on; -1: the walk ends. */
typedef int silt_walk_step(void *ctx, const struct silt_walk_item *i, struct silt_error *e);

struct silt_walk {
    struct silt_task *task; /* borrowed; the walk ends when nobody wants it any more */
    silt_walk_step *enter;
    silt_walk_step *leave; /* a folder, after what was in it; or NULL. `st` is NULL */
    void *ctx;
};

/* Takes `root`, a folder that can be read. One walk at a time. */
int silt_walk_run(const struct silt_walk *w, int root, struct silt_error *e);
