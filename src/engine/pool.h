/* SPDX-License-Identifier: Apache-2.0 */
/* pool: the btrfs that holds what sandboxes write: `<state>/pool`. Where the state folder is btrfs
 * it is a plain folder of it; elsewhere `<state>/pool.img` (engine/pool_file.h), a file with a btrfs
 * inside, is loop-mounted there. Runs in silt-super, as root, before anything else of the instance.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* Makes what is missing and mounts it; fine when it is mounted already. The caller has a mount
 * namespace of its own that propagates nothing, so the mount goes when the last of its processes
 * goes, and the loop device with it. A new pool is small; silt-priv lets it grow up to max_bytes. A pool that cannot be written is mounted for reading. */
int silt_pool_mount(const char *state_dir, uint64_t max_bytes, struct silt_error *e);
