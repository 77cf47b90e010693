/* SPDX-License-Identifier: Apache-2.0 */
/* caps: the capabilities a process of ours keeps inside its user namespace. By raw system calls:
 * runs between clone and exec, where nothing may allocate. */
#pragma once

#include "base/error.h"

#include <stdint.h>

extern const uint64_t silt_caps_sandbox; /* root inside a sandbox */
extern const uint64_t silt_caps_fetch;   /* silt-fetch: what unpacking needs, and chroot */

/* Bounding, permitted and effective set become `keep`; the inheritable and ambient sets empty. */
int silt_caps_keep(uint64_t keep, struct silt_error *e);
