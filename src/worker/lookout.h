/* SPDX-License-Identifier: Apache-2.0 */
/* lookout: a watch at work, shared by what follows the kernel (watch.c) and what mends the picture
 * of the folders when they changed faster than they could be followed (mend.c). */
#pragma once

#include "worker/teller.h"
#include "worker/tree.h"

enum { SILT_LOOKOUT_DIRTY_MAX = 4096 };

struct silt_lookout {
    struct silt_task *task; /* borrowed */
    int inotify;
    bool over; /* the last event was told */
    struct silt_tree tree;
    struct silt_folder *moving; /* was moved from its place; where to, the next event may tell */
    uint32_t cookie;
    uint32_t ours;   /* cookie: a file of ours takes the place of another */
    int file_wd;     /* a single file is watched: its watch */
    uint32_t events; /* about folders, since all was quiet */
    bool stale;      /* a folder was not where it should be */
    size_t dirty_count;
    int dirty[SILT_LOOKOUT_DIRTY_MAX]; /* folders to look at again, by number */
    struct silt_teller teller;
};

/* watch.c */
/* Opens the folder and makes sure that it is the one; -1: it is not there now. */
int silt_lookout_open(struct silt_lookout *l, struct silt_folder *f);
/* Every folder in it is followed; new ones are told with what is in them. */
void silt_lookout_read(struct silt_lookout *l, struct silt_folder *f, int fd, bool is_new);
void silt_lookout_unfollow(struct silt_lookout *l, struct silt_folder *f); /* and all below */

/* mend.c */
void silt_lookout_mark(struct silt_lookout *l, struct silt_folder *f);
/* When all is quiet: looks at the folders that were marked. False: it is beyond mending. */
bool silt_lookout_mend(struct silt_lookout *l);
