/* SPDX-License-Identifier: Apache-2.0 */
/* watch_tree: the state of a running watch: the directories it follows (watch_tree.c), the kernel's
 * events (watch.c), and rescans when directories changed faster than they could be followed
 * (watch_rescan.c). */
#pragma once

#include "worker/watch/watch_filter.h"
#include "worker/watch/tree.h"

enum { SILT_WATCH_TREE_DIRTY_MAX = 4096 };

struct silt_watch_tree {
    struct silt_task *task; /* borrowed */
    int inotify;
    bool over; /* the last event was reported */
    struct silt_tree tree;
    struct silt_directory *moving; /* moved away; the next event may show where to */
    uint32_t cookie;
    uint32_t ours;   /* cookie: our own temporary file replaces another file */
    int file_wd;     /* if a single file is watched: its watch descriptor */
    uint32_t events; /* about directories, since the last quiet moment */
    bool stale;      /* a directory was not where it should be */
    bool repaired;   /* a directory had another name than reported */
    bool mending;    /* a rescan is running: nothing more is marked */
    size_t dirty_count;
    int dirty[SILT_WATCH_TREE_DIRTY_MAX]; /* watch descriptors of directories to rescan */
    struct silt_watch_filter teller;
};

/* In watch_tree.c: */
int silt_watch_tree_begin(struct silt_watch_tree *l, struct silt_error *e);
void silt_watch_tree_forget(struct silt_watch_tree *l); /* everything; it can begin again */
/* The absolute path, as requested, of a name (NULL: of the directory itself). False: too long to
 * report; that is reported instead. */
bool silt_watch_tree_path(struct silt_watch_tree *l, const struct silt_directory *f,
                          const char *name, char out[SILT_WORKER_PATH_MAX + 1]);
uint32_t silt_watch_tree_mask(const struct silt_watch_tree *l, bool is_root);
/* Watch descriptor for the open file; -1 with errno. */
int silt_watch_tree_add(struct silt_watch_tree *l, int fd, uint32_t mask);
/* A followed directory contains `name`: follows it if it is a directory. */
void silt_watch_tree_follow(struct silt_watch_tree *l, struct silt_directory *parent, int dir,
                            const char *name, bool is_new);
/* Opens the directory and checks that it is the right one; -1: it is not there now. */
int silt_watch_tree_open(struct silt_watch_tree *l, struct silt_directory *f);
/* Follows every directory in it; reports new ones with their contents. Takes fd. */
void silt_watch_tree_read(struct silt_watch_tree *l, struct silt_directory *f, int fd, bool is_new);
void silt_watch_tree_read_unread(struct silt_watch_tree *l);
void silt_watch_tree_unfollow(struct silt_watch_tree *l,
                              struct silt_directory *f); /* and all below */

/* In watch_rescan.c: */
void silt_watch_tree_mark(struct silt_watch_tree *l, struct silt_directory *f);
/* In a quiet moment: rescans the marked directories. False: too much has changed, start over. */
bool silt_watch_tree_mend(struct silt_watch_tree *l);
