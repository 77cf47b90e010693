/* SPDX-License-Identifier: Apache-2.0 */
/* spawn_child: the steps between fork and exec. Runs in the child: nothing allocates or uses the
 * loop. */
#pragma once

#include "agent/spawn/spawn.h"

/* `entered`: clone3 has put the child into the handle already. `report` is close-on-exec. */
_Noreturn void silt_spawn_child(const struct silt_spawn *s, bool entered, int report);
