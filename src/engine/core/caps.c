/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (1ULL << (cap))

/* Low ports and ping are enabled by sysctls of the network namespace, not by capabilities. */
const uint64_t silt_caps_sandbox = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER)
                                   | BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID)
                                   | BIT(CAP_SETUID) | BIT(CAP_SETPCAP) | BIT(CAP_SYS_CHROOT)
                                   | BIT(CAP_AUDIT_WRITE) | BIT(CAP_SETFCAP);

const uint64_t silt_caps_fetch = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER)
                                 | BIT(CAP_FSETID) | BIT(CAP_SYS_CHROOT);

const uint64_t silt_caps_shift =
    BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_SETFCAP);

/* The kernel's last capability is found by trying: EINVAL ends the loop. */
static int drop_bounding(uint64_t keep, struct silt_error *e)
{
    for (unsigned long cap = 0; cap < 64; cap++) {
        if ((keep & BIT(cap)) != 0 || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL)
            break;
        return silt_fail_errno(e, "drop capability %lu", cap);
    }
    return 0;
}

int silt_caps_keep(uint64_t keep, struct silt_error *e)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)keep, .permitted = (uint32_t)keep},
        {.effective = (uint32_t)(keep >> 32), .permitted = (uint32_t)(keep >> 32)},
    };
    if (drop_bounding(keep, e) < 0)
        return -1;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return silt_fail_errno(e, "clear ambient capabilities");
    if (syscall(SYS_capset, &head, data) < 0)
        return silt_fail_errno(e, "set capabilities");
    return 0;
}
