/* SPDX-License-Identifier: Apache-2.0 */
/* command: what a command with a process of its own is: `bash -c`, a program with its arguments, or
 * a new shell that first loads the state of a session. */
#pragma once

#include "agent/exec.h"

/* x has its handle and x->launch its callbacks. */
int silt_command_launch(struct silt_exec *x, struct silt_error *e);
