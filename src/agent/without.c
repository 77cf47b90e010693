/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/without.h"

#ifdef SILT_UNSAFE_TESTS
#include "agent/handle.h"
#include "base/own.h"
#include "base/slice.h"

#include <fcntl.h>
#include <stdio.h>

/* Also asked after fork: it reads the environment and allocates nothing. */
bool silt_agent_without(const char *protection)
{
    const char *list = getenv("SILT_WITHOUT");
    silt_slice rest = silt_slice_of(list != NULL ? list : "");
    silt_slice name;
    while (silt_slice_split(&rest, ',', &name))
        if (silt_slice_eq(name, silt_slice_of(protection)))
            return true;
    return false;
}

bool silt_agent_spares(pid_t id)
{
    char path[32];
    char text[512] = "";
    if (!silt_agent_without("kill_tree"))
        return false;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)id);
    silt_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        return false;
    return silt_proc_field(text, "\nPPid:\t", 10) == 1;
}
#else
/* ISO C forbids an empty translation unit. */
typedef int silt_agent_without_nothing;
#endif
