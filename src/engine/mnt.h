/* SPDX-License-Identifier: Apache-2.0 */
/* mnt: mounts as descriptors: made or cloned detached, then moved in. A mount target inside a
 * sandbox's root is resolved from the root's descriptor and never through a symlink. Allocates
 * nothing: used between clone and exec too. */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <sys/mount.h>

struct silt_mnt_option {
    const char *key;
    const char *value; /* NULL: a flag */
};

/* A new file system. `attributes`: MOUNT_ATTR_…; options end with a NULL key (or are NULL). */
int silt_mnt_make(const char *type, unsigned attributes, const struct silt_mnt_option *options,
                  int *ret_fd, struct silt_error *e);
/* A private copy of one mount, seen from `path` below `dir` ("" for dir itself). */
int silt_mnt_clone(int dir, const char *path, int *ret_fd, struct silt_error *e);
/* A clone whose files appear with the ids that the user namespace maps them to. */
int silt_mnt_clone_as(int dir, const char *path, int userns, int *ret_fd, struct silt_error *e);
int silt_mnt_set(int mount, uint64_t attributes, struct silt_error *e);
/* Moves a detached mount onto `path` below `dir`; "" for dir itself. Symlinks are not followed at
 * the end of `path`; callers give paths whose other parts are ours. */
int silt_mnt_attach(int mount, int dir, const char *path, struct silt_error *e);
/* The folder `name` (one part, no slash) of a root that is not trusted; made when it is missing. */
int silt_mnt_target(int root, const char *name, int *ret_fd, struct silt_error *e);
/* The file `path` of such a root, made when only it is missing; links inside are followed. */
int silt_mnt_target_file(int root, const char *path, int *ret_fd, struct silt_error *e);
/* Of a tmpfs at `path`: how much it holds from now on. */
int silt_mnt_resize(const char *path, uint64_t bytes, struct silt_error *e);
int silt_mnt_pivot(struct silt_error *e); /* the current folder becomes /, the old root goes */
