/* SPDX-License-Identifier: Apache-2.0 */
/* launch: starts silt-init from a prepared root, control groups and namespaces. Runs in a worker of
 * silt-priv; launch_child.c is the part between clone and exec. */
#pragma once

#include "engine/core/cgroup.h"
#include "engine/launch/first_pids.h"
#include "engine/network/net.h"
#include "engine/core/seccomp.h"

#include <stdbool.h>

/* All borrowed. */
struct silt_launch {
    uint32_t slot;
    uint32_t ids;                       /* first id of the sandbox's range */
    int root;                           /* detached mount */
    int usr;                            /* detached mount of the machine's /usr, or -1 */
    int template;                       /* detached mount: the sandbox's own copy of the template */
    const struct silt_first_pids *pids; /* the pid is recorded there before the child continues */
    int channel;                        /* silt-init's end */
    const struct silt_cgroups *cgroups;
    const struct silt_cgroup_birth *birth;
    const int *handle_fds;
    int nhandle_fds;
    uint32_t handles;
    const struct silt_net *net;
    int home_net;         /* the caller's own network namespace */
    const char *resolver; /* file of the template to use as resolv.conf; NULL: none */
    const struct silt_seccomp *seccomp;
    int init; /* the program silt-init */
    uint64_t shm_bytes;
    const char *hostname;
};

/* Call once in each process that launches: sets ignored signals and what it may change about
 * itself. */
int silt_launch_prepare(struct silt_error *e);
/* Returns once silt-init runs. On failure no process is left. */
int silt_launch(const struct silt_launch *l, int *ret_pidfd, struct silt_error *e);
/* Copies the program into a sealed memfd, which the guest can neither read nor change. */
int silt_launch_copy_program(const char *path, int *ret_fd, struct silt_error *e);
