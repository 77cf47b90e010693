/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_jail: starts silt-fetch in a jail: root of a user namespace with the ids of images, no
 * network, and a root directory that contains the machine's /usr (for its libraries) and one
 * directory to write to or read from. Runs in silt-priv's workers. */
#pragma once

#include "engine/core/cgroup.h"
#include "engine/core/seccomp.h"

/* All borrowed. */
struct silt_fetch_jail {
    uint32_t ids;      /* first id of the images */
    int directory;     /* becomes its current directory */
    bool is_mount;     /* `directory` is a detached mount */
    int input;         /* becomes its descriptor 0 */
    int result;        /* becomes its descriptor 3 */
    const int *output; /* becomes its descriptor 1; NULL: none */
    int program;
    const struct silt_cgroups *cgroups; /* NULL: it stays in the caller's groups */
    uint32_t group;                     /* number for silt_cgroup_fetch */
    const struct silt_seccomp *seccomp;
};

/* Returns once silt-fetch runs. It is killed when the caller dies. */
int silt_fetch_jail_start(const struct silt_fetch_jail *c, int *ret_pidfd, struct silt_error *e);
