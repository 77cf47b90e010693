/* SPDX-License-Identifier: Apache-2.0 */
/* proctitle: sets /proc/1/cmdline. Tools expect the container's program there, which is our
 * child. */
#pragma once

#include "base/slice.h"

/* Arguments, each NUL-terminated. If the kernel lacks CONFIG_CHECKPOINT_RESTORE, our own stay. */
void silt_proctitle_set(silt_slice arguments);
