/* SPDX-License-Identifier: Apache-2.0 */
/* tree: the folders that a watch follows, by the kernel's number and by place. Only folders are
 * remembered, so the memory does not grow with the files in them. */
#pragma once

#include "wire/worker.h"

#include <stdbool.h>
#include <stddef.h>

enum { SILT_TREE_MAX = 65536, SILT_TREE_BUCKETS = 4096 };

struct silt_folder {
    struct silt_folder *parent;              /* NULL: the root, or taken out */
    struct silt_folder *first, *next, *prev; /* children, siblings */
    struct silt_folder *chain;               /* of its bucket */
    struct silt_folder *unread;              /* whoever is to be read after it */
    int wd;
    bool is_new; /* what is found inside is told */
    bool waits;  /* to be read */
    bool dirty;  /* what is in it must be looked at again */
    bool again;  /* once more after that: something below it was given up */
    bool lost;   /* was not where it should be when its parent was looked at */
    char name[]; /* the root: empty */
};

struct silt_tree {
    struct silt_folder *root;
    struct silt_folder *buckets[SILT_TREE_BUCKETS];
    struct silt_folder *unread_first, *unread_last;
    size_t count;
};

/* NULL: too many, or no memory. `parent` is NULL for the root. */
struct silt_folder *silt_tree_add(struct silt_tree *t, struct silt_folder *parent, const char *name,
                                  int wd);
struct silt_folder *silt_tree_find(const struct silt_tree *t, int wd);
struct silt_folder *silt_tree_child(const struct silt_folder *f, const char *name);
/* Calls `gone` for each number, then frees: the folder and all below it. */
void silt_tree_remove(struct silt_tree *t, struct silt_folder *f,
                      void (*gone)(void *context, int wd), void *context);
/* NULL: no memory; the folder is as before. Its address changes. */
struct silt_folder *silt_tree_move(struct silt_tree *t, struct silt_folder *f,
                                   struct silt_folder *parent, const char *name);
void silt_tree_defer(struct silt_tree *t, struct silt_folder *f); /* it is to be read */
struct silt_folder *silt_tree_next_unread(struct silt_tree *t);
/* The path of `name` (or NULL: of the folder itself) below the root, without a leading slash.
 * False: it is longer than SILT_WORKER_PATH_MAX. */
bool silt_tree_path(const struct silt_folder *f, const char *name,
                    char out[SILT_WORKER_PATH_MAX + 1]);
