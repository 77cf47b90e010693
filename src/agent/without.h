/* SPDX-License-Identifier: Apache-2.0 */
/* without: in test builds (-Dunsafe_tests=true) the variable SILT_WITHOUT takes single protections
 * away, so that a test can prove that its attack succeeds without them. In an ordinary build every
 * question here is a constant and the code behind it is gone. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { SILT_UNSAFE_FD = 200 }; /* close_fds: from here on descriptors are left alone */

#ifdef SILT_UNSAFE_TESTS
bool silt_agent_without(const char *protection);
bool silt_agent_spares(pid_t id); /* kill_tree: an orphan, whoever started it */
#else
static inline bool silt_agent_without(const char *protection)
{
    (void)protection;
    return false;
}
static inline bool silt_agent_spares(pid_t id)
{
    (void)id;
    return false;
}
#endif
