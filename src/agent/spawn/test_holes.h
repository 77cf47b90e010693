/* SPDX-License-Identifier: Apache-2.0 */
/* test_holes: what silt-init does differently when a test removes a protection
 * (base/test_switch.h). In ordinary builds every check is a constant and the code behind it is
 * compiled out. */
#pragma once

#include "base/test_switch.h"

#include <sys/types.h>

enum { SILT_UNSAFE_FD = 200 }; /* close_fds: descriptors from here on stay open */

#ifdef SILT_UNSAFE_TESTS
bool silt_agent_spares(pid_t id); /* kill_tree: spares orphans */
#else
static inline bool silt_agent_spares(pid_t id)
{
    (void)id;
    return false;
}
#endif
