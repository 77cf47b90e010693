/* SPDX-License-Identifier: Apache-2.0 */
/* unsafe: the mistakes that test builds can make on purpose (base/without.h), where taking a
 * protection away is more than leaving a step out. An ordinary build has none of this. */
#pragma once

#include "base/error.h"

#include <stdint.h>

#ifdef SILT_UNSAFE_TESTS

/* While the stage is set: the machine's root at /host, the instance's memory groups at /groups. */
int silt_unsafe_stage(int root, const char *cgroup, struct silt_error *e);
/* proc_exe: an ordinary copy of the program that belongs to the guest. */
int silt_unsafe_program(int init, uint32_t ids, int *ret_fd, struct silt_error *e);
/* In the child, before mounts are forbidden to it: what the two below need. */
int silt_unsafe_prepare(uint32_t slot, struct silt_error *e);
/* pivot: chroot instead of pivot_root, the machine's root stays above. */
int silt_unsafe_chroot(int root, struct silt_error *e);
/* cgroup_ro: the sandbox's memory group at /sys/fs/cgroup, to write. */
int silt_unsafe_show_groups(int sysfs, struct silt_error *e);
/* close_fds: a descriptor of the machine's root that nobody closes. */
int silt_unsafe_leak(struct silt_error *e);

#else

static inline int silt_unsafe_stage(int root, const char *cgroup, struct silt_error *e)
{
    (void)root, (void)cgroup, (void)e;
    return 0;
}
static inline int silt_unsafe_program(int init, uint32_t ids, int *ret_fd, struct silt_error *e)
{
    (void)init, (void)ids, (void)ret_fd, (void)e;
    return 0;
}
static inline int silt_unsafe_prepare(uint32_t slot, struct silt_error *e)
{
    (void)slot, (void)e;
    return 0;
}
static inline int silt_unsafe_chroot(int root, struct silt_error *e)
{
    (void)root, (void)e;
    return 0;
}
static inline int silt_unsafe_show_groups(int sysfs, struct silt_error *e)
{
    (void)sysfs, (void)e;
    return 0;
}
static inline int silt_unsafe_leak(struct silt_error *e)
{
    (void)e;
    return 0;
}

#endif
