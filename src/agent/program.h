/* SPDX-License-Identifier: Apache-2.0 */
/* program: a program by its name, as a shell would find it. Runs in the child, after fork. */
#pragma once

#include "base/error.h"

/* Returns only when it could not be started: SILT_NOT_FOUND, SILT_DENIED, … */
void silt_program_exec(char *const *argv, char *const *envp, struct silt_error *e);
