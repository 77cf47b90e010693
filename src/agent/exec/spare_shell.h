/* SPDX-License-Identifier: Apache-2.0 */
/* spare_shell: a shell started before there is a command for it. Starting bash is most of the cost
 * of a background command, so after the first one there is always a spare shell waiting in its own
 * handle. It is ended when it was not used for a while, or when its handle is needed. */
#pragma once

#include "agent/exec/exec.h"

struct silt_spare_shell {
    struct silt_agent *agent;   /* borrowed */
    struct silt_handle *handle; /* NULL: no shell */
    bool doomed;                /* it was told to exit */
    struct silt_launch launch;
    struct silt_limits limits; /* of the shell */
    int in;                    /* owned: the pipe it waits on */
    int state, script;         /* owned: memfds shared with it */
    int out, err;              /* owned: our ends of the command's pipes */
    struct silt_timer timer;   /* delay until one is started, or ended */
};

void silt_spare_shell_init(struct silt_spare_shell *s, struct silt_agent *a);
/* Moves the shell to x with its handle, pipes and launch, and sends it x's state and command.
 * x->launch must have its callbacks, which may be called before this returns. False: no suitable
 * shell. */
bool silt_spare_shell_take(struct silt_spare_shell *s, struct silt_exec *x);
/* Requests that a spare shell be started. */
void silt_spare_shell_want(struct silt_spare_shell *s);
/* Another command waits for a handle, or the last session is gone. */
void silt_spare_shell_drop(struct silt_spare_shell *s);
