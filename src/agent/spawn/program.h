/* SPDX-License-Identifier: Apache-2.0 */
/* program: executes a program by name, looked up as a shell would. Runs in the child after fork. */
#pragma once

#include "base/error.h"

/* Returns only on failure: SILT_NOT_FOUND, SILT_DENIED, … */
void silt_program_exec(char *const *argv, char *const *envp, struct silt_error *e);
