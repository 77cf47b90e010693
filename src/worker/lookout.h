/* SPDX-License-Identifier: Apache-2.0 */
/* lookout: a watch at work: which folders it follows (lookout.c), what the kernel tells of them
 * (watch.c), and what mends the picture when they changed faster than they could be followed
 * (mend.c). */
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
    bool repaired;   /* a folder had another name than was told */
    bool mending;    /* folders are looked at again: nothing more is marked */
    size_t dirty_count;
    int dirty[SILT_LOOKOUT_DIRTY_MAX]; /* folders to look at again, by number */
    struct silt_teller teller;
};

/* lookout.c */
int silt_lookout_begin(struct silt_lookout *l, struct silt_error *e);
void silt_lookout_forget(struct silt_lookout *l); /* everything; it can begin again */
/* The absolute path, as it was asked for, of a name (NULL: of itself) in a folder. False: it is too
 * long to be told, which is told. */
bool silt_lookout_path(struct silt_lookout *l, const struct silt_folder *f, const char *name,
                       char out[SILT_WORKER_PATH_MAX + 1]);
uint32_t silt_lookout_mask(const struct silt_lookout *l, bool is_root);
/* The kernel's number of what the descriptor leads to; -1 with errno. */
int silt_lookout_add(struct silt_lookout *l, int fd, uint32_t mask);
/* A folder of the tree has this in it: it is followed if it is a folder. */
void silt_lookout_follow(struct silt_lookout *l, struct silt_folder *parent, int dir,
                         const char *name, bool is_new);
/* Opens the folder and makes sure that it is the one; -1: it is not there now. */
int silt_lookout_open(struct silt_lookout *l, struct silt_folder *f);
/* Every folder in it is followed; new ones are told with what is in them. Takes fd. */
void silt_lookout_read(struct silt_lookout *l, struct silt_folder *f, int fd, bool is_new);
void silt_lookout_read_unread(struct silt_lookout *l);
void silt_lookout_unfollow(struct silt_lookout *l, struct silt_folder *f); /* and all below */

/* mend.c */
void silt_lookout_mark(struct silt_lookout *l, struct silt_folder *f);
/* When all is quiet: looks at the folders that were marked. False: it is beyond mending. */
bool silt_lookout_mend(struct silt_lookout *l);
