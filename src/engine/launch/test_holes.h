/* SPDX-License-Identifier: Apache-2.0 */
/* test_holes: the protections that test builds can remove on purpose (base/test_switch.h), where
 * this takes more than skipping a step. Empty in ordinary builds. */
#pragma once

#include "base/error.h"

#include <stdint.h>

#ifdef SILT_UNSAFE_TESTS

/* While mount_stage is set up: mounts the machine's root at /host and the instance's memory groups
 * at /groups. */
int silt_test_holes_stage(int root, const char *cgroup, struct silt_error *e);
/* proc_exe: makes an ordinary copy of the program, owned by the guest. */
int silt_test_holes_program(int init, uint32_t ids, int *ret_fd, struct silt_error *e);
/* Runs in the child before it loses the right to mount: prepares the next two. */
int silt_test_holes_prepare(uint32_t slot, struct silt_error *e);
/* pivot: chroot instead of pivot_root; the machine's root stays reachable above. */
int silt_test_holes_chroot(int root, struct silt_error *e);
/* cgroup_ro: mounts the sandbox's memory group writable at /sys/fs/cgroup. */
int silt_test_holes_show_groups(int sysfs, struct silt_error *e);
/* close_fds: leaks a descriptor of the machine's root. */
int silt_test_holes_leak(struct silt_error *e);

#else

static inline int silt_test_holes_stage(int root, const char *cgroup, struct silt_error *e)
{
    (void)root, (void)cgroup, (void)e;
    return 0;
}
static inline int silt_test_holes_program(int init, uint32_t ids, int *ret_fd, struct silt_error *e)
{
    (void)init, (void)ids, (void)ret_fd, (void)e;
    return 0;
}
static inline int silt_test_holes_prepare(uint32_t slot, struct silt_error *e)
{
    (void)slot, (void)e;
    return 0;
}
static inline int silt_test_holes_chroot(int root, struct silt_error *e)
{
    (void)root, (void)e;
    return 0;
}
static inline int silt_test_holes_show_groups(int sysfs, struct silt_error *e)
{
    (void)sysfs, (void)e;
    return 0;
}
static inline int silt_test_holes_leak(struct silt_error *e)
{
    (void)e;
    return 0;
}

#endif
