/* SPDX-License-Identifier: Apache-2.0 */
/* zygote: starts a warm Python. It runs with full rights because it enters sandboxes, and therefore
 * only from an image that the operator trusts. Its root is the image, read-only, with the
 * interpreters in its /dev, its own /tmp and no network. It inherits one descriptor from us; its
 * children inherit the limits, signals and environment that commands in a sandbox have. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

/* `image` is the directory of a root file system; `control` becomes descriptor 3 (wire/zygote.h).
 * Both are borrowed. Returns once Python runs. It is the caller's child and dies with it. */
int silt_zygote_start(int image, int control, pid_t *ret_pid, struct silt_error *e);
