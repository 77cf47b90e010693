/* SPDX-License-Identifier: Apache-2.0 */
/* path_at: the result of a path lookup: an open directory and a name in it. Later changes of the
 * path have no effect, only changes of the name. */
#pragma once

#include "worker/task.h"

#include <sys/stat.h>

struct silt_path_at {
    int dir; /* owned */
    char name[NAME_MAX + 1];
    bool slash;     /* the path has a trailing slash: it must be a directory */
    struct stat st; /* of the name, not followed; st_mode 0: does not exist */
};

enum {
    SILT_PATH_AT_PARENTS = 1, /* create missing directories */
    SILT_PATH_AT_FOLLOW = 2,  /* follow a link at the end to its target, which may be missing */
};

/* EISDIR for a path without a last name ("/", "..", "x/."). */
int silt_path_at_find(const struct silt_task *t, const char *path, unsigned how,
                      struct silt_path_at *ret, struct silt_error *e);
void silt_path_at_fini(struct silt_path_at *p);
#define silt_auto_place __attribute__((cleanup(silt_path_at_fini))) struct silt_path_at

static inline bool silt_path_at_is_empty(const struct silt_path_at *p)
{
    return p->st.st_mode == 0;
}

/* Opens a directory below `base`, creating missing parts like `mkdir -p`; -1 with errno. `base` may
 * be AT_FDCWD. */
int silt_path_at_make_directories(int base, const char *path, mode_t mode);

/* Creates a directory with mode 0700 and opens it for reading; -1 with errno. */
int silt_path_at_make_closed(int dir, const char *name);

/* renameat(2); fresh: fails with EEXIST if the target exists. */
int silt_path_at_rename(int from_dir, const char *from, int to_dir, const char *to, bool fresh);

/* Names of unfinished files: a draft will replace another file, other temporary names are being
 * copied or unpacked. Watches do not report them. */
enum { SILT_TEMP_SIZE = 18 };
void silt_path_at_temp(char out[SILT_TEMP_SIZE]);
void silt_path_at_draft(char out[SILT_TEMP_SIZE]);
bool silt_path_at_is_temp(const char *name); /* also true for drafts */
bool silt_path_at_is_draft(const char *name);
