/* SPDX-License-Identifier: Apache-2.0 */
/* launch: from a prepared root, groups and namespaces to a running silt-init. Runs in a worker of
 * silt-priv; what happens after clone and before exec is launch_child.c. */
#pragma once

#include "engine/cgroup.h"
#include "engine/net.h"
#include "engine/seccomp.h"

#include <stdbool.h>

/* All borrowed. */
struct silt_launch {
    uint32_t slot;
    uint32_t ids; /* first id of the sandbox's range */
    int root;     /* detached mount */
    int usr;      /* detached mount of the machine's /usr, or -1 */
    int template; /* detached mount: its own copy of the template */
    int volume;   /* the pid is noted there before the child goes on */
    int channel;  /* silt-init's end */
    const struct silt_cgroups *cgroups;
    const struct silt_cgroup_birth *birth;
    const int *handle_fds;
    int nhandle_fds;
    uint32_t handles;
    const struct silt_net *net;
    int home_net; /* the caller's own network namespace */
    const char *resolver; /* file of the template that is its resolv.conf; NULL: none */
    const struct silt_seccomp *seccomp;
    int init; /* the program */
    uint64_t shm_bytes;
    const char *hostname;
};

/* Once for a process that launches: what it ignores and may change about itself. */
int silt_launch_prepare(struct silt_error *e);
/* Answers when silt-init runs. On failure no process is left. */
int silt_launch(const struct silt_launch *l, int *ret_pidfd, struct silt_error *e);
/* A sealed copy of the program in memory, which nobody inside can read or change. */
int silt_launch_copy_program(const char *path, int *ret_fd, struct silt_error *e);
