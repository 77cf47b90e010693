/* SPDX-License-Identifier: Apache-2.0 */
/* rlimit: the resource limits of a new sandbox. They only bound what cgroups cannot count. */
#pragma once

#include "base/error.h"

/* Never raises a hard limit: silt-priv may lack CAP_SYS_RESOURCE. */
int silt_rlimit_sandbox(struct silt_error *e);
/* The limits of a command in the sandbox: without those meant for silt-init alone. */
int silt_rlimit_command(struct silt_error *e);
int silt_rlimit_fetch(struct silt_error *e);
/* For silt-priv itself: raises the descriptor limit as far as the machine allows. */
void silt_rlimit_many_files(void);
