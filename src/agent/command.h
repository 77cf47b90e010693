/* SPDX-License-Identifier: Apache-2.0 */
/* command: what a command with a process of its own is: `bash -c`, a program with its arguments, or
 * a new shell that first loads the state of a session. */
#pragma once

#include "agent/exec.h"
#include "agent/script.h"

/* x has its handle and x->launch its callbacks. */
int silt_command_launch(struct silt_exec *x, struct silt_error *e);

/* For a shell that runs already (spare.c), with the state as number 3 and the error stream as 4. */
int silt_command_pipe(int *ret_ours, int *ret_theirs, struct silt_error *e);
/* The line that loads the state of a session. */
void silt_command_load(struct silt_script *s, const struct silt_exec *x);
/* What follows: the command. The file is empty before and at its beginning afterwards. */
int silt_command_write(const struct silt_exec *x, int file, struct silt_error *e);
