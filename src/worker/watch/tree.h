/* SPDX-License-Identifier: Apache-2.0 */
/* tree: the directories that a watch follows, indexed by watch descriptor and by path. Only
 * directories are stored, so memory does not grow with the files in them. */
#pragma once

#include "wire/worker.h"

#include <stdbool.h>
#include <stddef.h>

enum { SILT_TREE_MAX = 65536, SILT_TREE_BUCKETS = 4096 };

struct silt_directory {
    struct silt_directory *parent;              /* NULL: the root, or removed */
    struct silt_directory *first, *next, *prev; /* children, siblings */
    struct silt_directory *chain;               /* next in its hash bucket */
    struct silt_directory *unread;              /* next in the queue of directories to read */
    int wd;
    bool is_new; /* report what is found inside */
    bool waits;  /* queued for reading */
    bool dirty;  /* its contents must be checked again */
    bool again;  /* once more after that: a directory below it was given up */
    bool lost;   /* was missing when its parent was checked */
    char name[]; /* empty for the root */
};

struct silt_tree {
    struct silt_directory *root;
    struct silt_directory *buckets[SILT_TREE_BUCKETS];
    struct silt_directory *unread_first, *unread_last;
    size_t count;
};

/* NULL: too many, or no memory. `parent` is NULL for the root. */
struct silt_directory *silt_tree_add(struct silt_tree *t, struct silt_directory *parent,
                                     const char *name, int wd);
struct silt_directory *silt_tree_find(const struct silt_tree *t, int wd);
struct silt_directory *silt_tree_child(const struct silt_directory *f, const char *name);
/* Calls `gone` for each watch descriptor, then frees the directory and all below it. */
void silt_tree_remove(struct silt_tree *t, struct silt_directory *f,
                      void (*gone)(void *context, int wd), void *context);
/* NULL: no memory; the directory is unchanged. Its address changes. */
struct silt_directory *silt_tree_move(struct silt_tree *t, struct silt_directory *f,
                                      struct silt_directory *parent, const char *name);
void silt_tree_defer(struct silt_tree *t, struct silt_directory *f); /* queues it for reading */
struct silt_directory *silt_tree_next_unread(struct silt_tree *t);
/* The path of `name` (NULL: of the directory itself) below the root, without a leading slash.
 * False: longer than SILT_WORKER_PATH_MAX. */
bool silt_tree_path(const struct silt_directory *f, const char *name,
                    char out[SILT_WORKER_PATH_MAX + 1]);
