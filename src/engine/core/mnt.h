/* SPDX-License-Identifier: Apache-2.0 */
/* mnt: mounts by descriptor: created or cloned detached, then attached. A mount target inside a
 * sandbox's root is resolved from the root's descriptor and never through a symlink. Allocates
 * nothing: also used between clone and exec. */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <sys/mount.h>

struct silt_mnt_option {
    const char *key;
    const char *value; /* NULL: a flag */
};

/* Creates a file system. `attributes`: MOUNT_ATTR_…; options end with a NULL key, or are NULL. */
int silt_mnt_make(const char *type, unsigned attributes, const struct silt_mnt_option *options,
                  int *ret_fd, struct silt_error *e);
/* Clones one mount privately, rooted at `path` below `dir` ("" for dir itself). */
int silt_mnt_clone(int dir, const char *path, int *ret_fd, struct silt_error *e);
/* Like silt_mnt_clone, but idmapped with the user namespace. */
int silt_mnt_clone_as(int dir, const char *path, int userns, int *ret_fd, struct silt_error *e);
int silt_mnt_set(int mount, uint64_t attributes, struct silt_error *e);
/* Attaches a detached mount at `path` below `dir` ("" for dir itself). A symlink as the last
 * component is not followed; all other components must be under our control. */
int silt_mnt_attach(int mount, int dir, const char *path, struct silt_error *e);
/* Opens the directory `name` (one component, no slash) of an untrusted root, creating it if
 * missing. */
int silt_mnt_target(int root, const char *name, int *ret_fd, struct silt_error *e);
/* Opens the file `path` of an untrusted root. Creates the file, but no parents, if missing;
 * symlinks are followed inside the root. */
int silt_mnt_target_file(int root, const char *path, int *ret_fd, struct silt_error *e);
/* Sets the size limit of the tmpfs at `path`. */
int silt_mnt_resize(const char *path, uint64_t bytes, struct silt_error *e);
/* makes the current directory / and detaches the old root */
int silt_mnt_pivot(struct silt_error *e);
