/* SPDX-License-Identifier: Apache-2.0 */
/* mounts: what is mounted below a sandbox's root: /dev, /sys, /proc and what covers their parts. Runs in
 * the sandbox's first process between clone and exec: nothing here allocates, locks or logs. */
#pragma once

#include "engine/launch.h"

/* The root itself is attached at SILT_STAGE_NEW. Afterwards this process can make no mount any more. */
int silt_mounts_attach(const struct silt_launch *l, struct silt_error *e);
