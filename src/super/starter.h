/* SPDX-License-Identifier: Apache-2.0 */
/* starter: a small child that execs programs for silt-super, which itself may hold tens of
 * thousands of descriptors and would pay for each of them at every fork. What it starts is
 * silt-super's child (CLONE_PARENT). It ends when its channel closes; a dead one is replaced on the
 * next order. */
#pragma once

#include "config/config.h"

#include <sys/types.h>

enum silt_program {
    SILT_PROGRAM_SILTD,
    SILT_PROGRAM_PRIV,
    SILT_PROGRAM_PROXY,
    SILT_PROGRAM_DIAL, /* silt-proxy again, in the gate: the descriptor behind the channel */
    SILT_PROGRAM_PREVIEW, /* silt-proxy again: visitors of services inside */
    SILT_PROGRAM_MAX
};

enum { SILT_STARTER_FDS_MAX = 16, SILT_STARTER_FIRST_FD = 3 };

struct silt_starter_order {
    enum silt_program program;
    bool fresh;                    /* silt-priv: nothing of the instance may still run */
    int fds[SILT_STARTER_FDS_MAX]; /* borrowed; become 3, 4, ... */
    int count;
};

struct silt_starter {
    const struct silt_config *config; /* borrowed */
    uid_t uid;                        /* of siltd */
    gid_t gid;
    uid_t proxy; /* of silt-proxy, uid and gid */
    pid_t pid;   /* of the starter; 0: none */
    int channel; /* -1: none */
};

int silt_starter_open(struct silt_starter *s, struct silt_error *e); /* config, uid, gid are set */
void silt_starter_close(struct silt_starter *s);                     /* waits for its end */
/* silt-super reaped it. */
void silt_starter_died(struct silt_starter *s);
int silt_starter_start(struct silt_starter *s, const struct silt_starter_order *order,
                       pid_t *ret_pid, struct silt_error *e);
