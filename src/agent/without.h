/* SPDX-License-Identifier: Apache-2.0 */
/* without: what silt-init does otherwise when a test takes a protection away (base/without.h). In an ordinary build every
 * question here is a constant and the code behind it is gone. */
#pragma once

#include "base/without.h"

#include <sys/types.h>

enum { SILT_UNSAFE_FD = 200 }; /* close_fds: from here on descriptors are left alone */

#ifdef SILT_UNSAFE_TESTS
bool silt_agent_spares(pid_t id); /* kill_tree: an orphan, whoever started it */
#else
static inline bool silt_agent_spares(pid_t id)
{
    (void)id;
    return false;
}
#endif
