/* SPDX-License-Identifier: Apache-2.0 */
/* launch_child: what a sandbox's first process does between clone and exec. Nothing here allocates,
 * locks or logs. */
#pragma once

#include "engine/launch/launch.h"

/* `pair` is the socket pair to the parent (engine/core/sync.h). */
_Noreturn void silt_launch_child(const struct silt_launch *l, const int pair[2]);
