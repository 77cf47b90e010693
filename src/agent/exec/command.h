/* SPDX-License-Identifier: Apache-2.0 */
/* command: builds a command with its own process: `bash -c`, a program with arguments, or a new
 * shell that first loads a session's state. */
#pragma once

#include "agent/exec/exec.h"
#include "agent/spawn/script.h"

/* x must have its handle, and x->launch its callbacks. */
int silt_command_launch(struct silt_exec *x, struct silt_error *e);

/* For a shell that runs already (spare_shell.c): the state is its descriptor 3, the error stream
 * its descriptor 4. */
int silt_command_pipe(int *ret_ours, int *ret_theirs, struct silt_error *e);
/* Adds the line that loads a session's state. */
void silt_command_load(struct silt_script *s, const struct silt_exec *x);
/* Writes the command that follows it. The file is empty before; its offset is 0 afterwards. */
int silt_command_write(const struct silt_exec *x, int file, struct silt_error *e);
