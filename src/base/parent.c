/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parent.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int silt_parent_end_with(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return -1;
    if (getppid() == parent)
        return 0;
    errno = ESRCH; /* it died before we asked: nobody would ever send the signal */
    return -1;
}
