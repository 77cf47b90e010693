/* SPDX-License-Identifier: Apache-2.0 */
/* spawn_child: the way from fork to exec. Runs in the child: nothing allocates or answers to the
 * loop. */
#pragma once

#include "agent/spawn.h"

/* `entered`: clone3 has put us into the handle already. `report` is close-on-exec. */
_Noreturn void silt_spawn_child(const struct silt_spawn *s, bool entered, int report);
