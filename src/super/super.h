/* SPDX-License-Identifier: Apache-2.0 */
/* super: starts silt-priv and siltd, restarts programs that die, connects them with each other, and
 * keeps the descriptors of running sandboxes for the next siltd (wire/super.h). Never reads a
 * client's request. */
#pragma once

#include "engine/network/gateway.h"
#include "super/exec_helper.h"
#include "super/fd_store.h"
#include "super/instance_dirs.h"

struct silt_super_birth {
    const struct silt_config *config;        /* borrowed */
    struct silt_exec_helper *starter;        /* borrowed, open */
    int listen;                              /* borrowed */
    int preview;                             /* borrowed: socket of previews; -1: none */
    int engine;                              /* borrowed: the engine socket; -1: none */
    struct silt_gateway *gate;               /* borrowed: the gateway, if there is one */
    const char *address;                     /* borrowed: address of the listening socket */
    const char *preview_address;             /* borrowed */
    const struct silt_instance_locks *locks; /* borrowed */
    /* borrowed, emptied: what a silt-super before the reload kept; NULL: a start */
    struct silt_fd_store *kept;
};

/* Runs until SIGTERM or SIGINT, which the caller has blocked together with SIGCHLD and SIGUSR2
 * (super/reload.h). *ret_status is the exit status for the process. */
int silt_super_run(const struct silt_super_birth *birth, int *ret_status, struct silt_error *e);
