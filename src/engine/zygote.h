/* SPDX-License-Identifier: Apache-2.0 */
/* zygote: how a warm Python is started: with all rights, because it enters sandboxes, and so only from an
 * image that the operator trusts. Its root is the image, read-only, with the interpreters in its /dev, a
 * /tmp of its own and no network. It inherits nothing of ours but one descriptor; what its children
 * inherit from it (limits, signals, environment) is what commands in a sandbox have. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

/* `image` is a folder with a root; `control` becomes its descriptor 3 (wire/zygote.h). Both are borrowed.
 * Answers when Python runs. It is the caller's child and dies with it. */
int silt_zygote_start(int image, int control, pid_t *ret_pid, struct silt_error *e);
