/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/test_holes.h"

#ifdef SILT_UNSAFE_TESTS
#include "agent/spawn/proc.h"

bool silt_agent_spares(pid_t id)
{
    return silt_without("kill_tree") && silt_proc_status(id, "PPid:", 10) == 1;
}
#else
/* ISO C forbids an empty translation unit. */
typedef int silt_agent_without_nothing;
#endif
