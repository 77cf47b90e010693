/* SPDX-License-Identifier: Apache-2.0 */
/* pool: the btrfs that holds what sandboxes write: `<state>/pool`. Where the state folder is btrfs
 * it is a plain folder of it; elsewhere `<state>/pool.img`, a sparse file with a btrfs inside, is
 * loop-mounted there. Runs in silt-super, as root, before anything else of the instance. */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* Makes what is missing and mounts it; fine when it is mounted already. The caller has a mount
 * namespace of its own that propagates nothing, so the mount goes when the last of its processes
 * goes, and the loop device with it. A pool file that is smaller than max_bytes grows; it never
 * shrinks. */
int silt_pool_mount(const char *state_dir, uint64_t max_bytes, struct silt_error *e);
