/* SPDX-License-Identifier: Apache-2.0 */
/* rlimit: the resource limits a sandbox is born with. They only bound what cgroups cannot count. */
#pragma once

#include "base/error.h"

/* Never raises a hard limit: silt-priv may lack CAP_SYS_RESOURCE. */
int silt_rlimit_sandbox(struct silt_error *e);
/* What a command in it has: without what bounds silt-init alone. */
int silt_rlimit_command(struct silt_error *e);
int silt_rlimit_fetch(struct silt_error *e);
/* For the helper itself: as many descriptors as the machine allows. */
void silt_rlimit_many_files(void);
