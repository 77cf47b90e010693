/* SPDX-License-Identifier: Apache-2.0 */
/* launch_child: the life of a sandbox's first process between clone and exec. Nothing here
 * allocates, locks or logs. */
#pragma once

#include "engine/launch.h"

/* `pair` is the channel to the parent (engine/sync.h). */
_Noreturn void silt_launch_child(const struct silt_launch *l, const int pair[2]);
