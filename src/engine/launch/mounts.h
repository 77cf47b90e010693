/* SPDX-License-Identifier: Apache-2.0 */
/* mounts: the mounts below a sandbox's root: /dev, /sys, /proc and what masks parts of them. Runs
 * in the sandbox's first process between clone and exec: nothing here allocates, locks or logs. */
#pragma once

#include "engine/launch/launch.h"

/* The root must be attached at SILT_MOUNT_STAGE_NEW. Afterwards this process can no longer
 * mount. */
int silt_mounts_attach(const struct silt_launch *l, struct silt_error *e);
