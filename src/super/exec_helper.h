/* SPDX-License-Identifier: Apache-2.0 */
/* exec_helper: a small child process that forks and execs programs for silt-super. silt-super may
 * hold tens of thousands of descriptors and would pay for each of them on every fork. The programs
 * are silt-super's children (CLONE_PARENT). The helper ends when its channel closes; a dead one is
 * replaced on the next order. */
#pragma once

#include "config/config.h"

#include <sys/types.h>

enum silt_program {
    SILT_PROGRAM_SILTD,
    SILT_PROGRAM_PRIV,
    SILT_PROGRAM_PROXY,
    SILT_PROGRAM_DIAL,    /* silt-proxy again, in the gateway: the descriptor after the channel */
    SILT_PROGRAM_PREVIEW, /* silt-proxy again: serves previews to clients */
    SILT_PROGRAM_MAX,
    SILT_PROGRAM_CHECK = SILT_PROGRAM_MAX, /* silt-super --check: its handover is descriptor 3 */
    SILT_EXEC_HELPER_PROGRAMS
};

enum { SILT_EXEC_HELPER_FDS_MAX = 16, SILT_EXEC_HELPER_FIRST_FD = 3 };

struct silt_exec_helper_order {
    enum silt_program program;
    bool fresh;                        /* silt-priv: nothing of the instance may still run */
    int fds[SILT_EXEC_HELPER_FDS_MAX]; /* borrowed; become descriptors 3, 4, ... */
    int count;
};

struct silt_exec_helper {
    const struct silt_config *config; /* borrowed */
    uid_t uid;                        /* of siltd */
    gid_t gid;
    uid_t proxy;               /* silt-proxy's uid and gid */
    char **argv;               /* borrowed: of silt-super */
    char super_path[PATH_MAX]; /* of silt-super on the disk; set by open */
    pid_t pid;                 /* of the helper; 0: none */
    int channel;               /* -1: none */
};

int silt_exec_helper_open(struct silt_exec_helper *s,
                          struct silt_error *e);         /* config, argv, uid and gid must be set */
void silt_exec_helper_close(struct silt_exec_helper *s); /* waits for its exit */
/* Whether all programs are there. */
int silt_exec_helper_find(struct silt_error *e);
/* The arguments of the silt-super that takes over the memfd `handover`; freed by
 * silt_config_args_free. */
char **silt_exec_helper_super_args(const struct silt_exec_helper *s, int handover, bool check);
/* silt-super reaped the helper. */
void silt_exec_helper_died(struct silt_exec_helper *s);
int silt_exec_helper_start(struct silt_exec_helper *s, const struct silt_exec_helper_order *order,
                           pid_t *ret_pid, struct silt_error *e);
