/* SPDX-License-Identifier: Apache-2.0 */
/* userns: user namespaces: the maps of a sandbox's own, and nameless ones that only give an
 * idmapped mount its map. */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

/* `count` ids, seen as `inside`… within the namespace, are `outside`… on the machine. */
struct silt_userns_map {
    uint32_t inside;
    uint32_t outside;
    uint32_t count;
};

/* Writes uid_map and gid_map of a process that was cloned into a new user namespace. */
int silt_userns_write_maps(pid_t pid, struct silt_userns_map map, struct silt_error *e);
/* A user namespace that no process lives in. */
int silt_userns_make(struct silt_userns_map map, int *ret_fd, struct silt_error *e);
