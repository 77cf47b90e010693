/* SPDX-License-Identifier: Apache-2.0 */
/* cage: how silt-fetch is started: root of a user namespace whose ids are those of images, without
 * network, with a root that holds the machine's /usr (for its libraries) and one folder to write
 * to, or to read from. */
#pragma once

#include "engine/cgroup.h"
#include "engine/seccomp.h"

/* All borrowed. */
struct silt_cage {
    uint32_t ids; /* first id of images */
    int folder;   /* becomes its current folder */
    bool is_mount; /* `folder` is a detached mount */
    int input;    /* its descriptor 0 */
    int result;   /* its descriptor 3 */
    const int *output; /* its descriptor 1; NULL: nothing */
    int program;
    const struct silt_cgroups *cgroups; /* NULL: it stays in the caller's groups */
    uint32_t group;                     /* of silt_cgroup_fetch */
    const struct silt_seccomp *seccomp;
};

/* Answers when it runs. It dies with the caller. */
int silt_cage_start(const struct silt_cage *c, int *ret_pidfd, struct silt_error *e);
