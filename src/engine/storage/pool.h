/* SPDX-License-Identifier: Apache-2.0 */
/* pool: the btrfs for the files of sandboxes, `<state>/pool`. If the state directory is on btrfs it
 * is a plain directory there; otherwise `<state>/pool.img` (engine/storage/pool_file.h), a file
 * that contains a btrfs, is loop-mounted. Runs in silt-super, as root, before everything else of
 * the instance. */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* Creates what is missing and mounts the pool; succeeds if it is mounted already. The caller has
 * its own mount namespace without propagation, so mount and loop device go away with its last
 * process. A new pool is small; silt-priv grows it up to max_bytes. A pool that cannot be written
 * is mounted read-only. */
int silt_pool_mount(const char *state_dir, uint64_t max_bytes, struct silt_error *e);
