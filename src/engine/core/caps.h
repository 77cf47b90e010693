/* SPDX-License-Identifier: Apache-2.0 */
/* caps: sets the capabilities of a process inside its user namespace. Uses raw system calls: it
 * runs between clone and exec, where nothing may allocate. */
#pragma once

#include "base/error.h"

#include <stdint.h>

extern const uint64_t silt_caps_sandbox; /* root inside a sandbox */
extern const uint64_t silt_caps_fetch;   /* silt-fetch: what unpacking needs, plus chroot */
extern const uint64_t silt_caps_shift;   /* changing the owners of files */

/* Sets the bounding, permitted and effective sets to `keep` and clears the inheritable and ambient
 * sets. */
int silt_caps_keep(uint64_t keep, struct silt_error *e);
