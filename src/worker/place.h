/* SPDX-License-Identifier: Apache-2.0 */
/* place: where a path ends: a folder that is held open and a name in it. What happens to the path
 * afterwards does not matter any more, only what happens to the name. */
#pragma once

#include "worker/task.h"

#include <sys/stat.h>

struct silt_place {
    int dir; /* owned */
    char name[NAME_MAX + 1];
    bool slash; /* the path said that it is a folder */
    struct stat st; /* of the name, not followed; st_mode 0: nothing is there */
};

enum {
    SILT_PLACE_PARENTS = 1, /* missing folders are made */
    SILT_PLACE_FOLLOW = 2,  /* a link at the end leads on to its target, which may be missing */
};

/* A path that ends in no name ("/", "..", "x/.") is EISDIR. */
int silt_place_find(const struct silt_task *t, const char *path, unsigned how, struct silt_place *ret,
                    struct silt_error *e);
void silt_place_fini(struct silt_place *p);
#define silt_auto_place __attribute__((cleanup(silt_place_fini))) struct silt_place

static inline bool silt_place_is_empty(const struct silt_place *p)
{
    return p->st.st_mode == 0;
}

/* Opens a folder below `base`, making what is missing of it as `mkdir -p`; -1 with errno. `base` may
 * be AT_FDCWD. */
int silt_place_make_folders(int base, const char *path, mode_t mode);

/* Makes a folder that nobody else can enter, and opens it for reading; -1 with errno. */
int silt_place_make_closed(int dir, const char *name);

/* renameat(2); fresh: fails with EEXIST when there is something. */
int silt_place_rename(int from_dir, const char *from, int to_dir, const char *to, bool fresh);

/* Names for what is not finished yet: a draft is a file that will replace another, the others are copied or
 * unpacked things. Watches do not tell about them. */
enum { SILT_TEMP_SIZE = 18 };
void silt_place_temp(char out[SILT_TEMP_SIZE]);
void silt_place_draft(char out[SILT_TEMP_SIZE]);
bool silt_place_is_temp(const char *name); /* drafts too */
bool silt_place_is_draft(const char *name);
