/* SPDX-License-Identifier: Apache-2.0 */
/* userns: user namespaces: the id maps of a sandbox, and process-less namespaces that serve only as
 * the map of an idmapped mount. */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

/* Maps `count` ids from `inside` within the namespace to `outside` on the machine. */
struct silt_userns_map {
    uint32_t inside;
    uint32_t outside;
    uint32_t count;
};

/* Writes uid_map and gid_map of a process that was cloned into a new user namespace. */
int silt_userns_write_maps(pid_t pid, struct silt_userns_map map, struct silt_error *e);
/* Creates a user namespace without any process in it. */
int silt_userns_make(struct silt_userns_map map, int *ret_fd, struct silt_error *e);
