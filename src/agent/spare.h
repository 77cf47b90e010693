/* SPDX-License-Identifier: Apache-2.0 */
/* spare: a shell that has been started before there is a command for it. Starting bash is most of what
 * a background command takes, so after the first one there is always another shell that waits, in a
 * handle of its own. It goes when it was not needed for a while, or when its handle is. */
#pragma once

#include "agent/exec.h"

struct silt_spare {
    struct silt_agent *agent;   /* borrowed */
    struct silt_handle *handle; /* NULL: there is no shell */
    bool doomed;                /* it was told to die */
    struct silt_launch launch;
    struct silt_limits limits; /* of the shell */
    int in;                    /* owned: what it waits for comes through here */
    int state, script;         /* owned: memory that it has, too */
    int out, err;              /* owned: our ends of the command's pipes */
    struct silt_timer timer;   /* until there is to be one, or none */
};

void silt_spare_init(struct silt_spare *s, struct silt_agent *a);
/* x gets the shell, with its state and its command, handle and pipes and launch; its launch has its
 * callbacks, which may be called already. False: there is none that is fit. */
bool silt_spare_take(struct silt_spare *s, struct silt_exec *x);
/* There is to be one. */
void silt_spare_want(struct silt_spare *s);
/* Somebody waits for a handle, or there is no session any more. */
void silt_spare_drop(struct silt_spare *s);
