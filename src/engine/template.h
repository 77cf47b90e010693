/* SPDX-License-Identifier: Apache-2.0 */
/* template: what every sandbox sees the same: /dev, the few files of sysfs and sysctl that programs
 * ask for, as copies, and what covers files of procfs. silt-priv builds it once, in its stage. Each
 * sandbox gets an overlay of it, so that its inodes are its own: a watch (inotify) or a lock (flock)
 * on a shared /dev/null would reach the sandboxes beside it. */
#pragma once

#include "base/error.h"

#define SILT_TEMPLATE "/template"
#define SILT_TEMPLATE_DEV SILT_TEMPLATE "/dev"
#define SILT_TEMPLATE_SYS SILT_TEMPLATE "/sys"
#define SILT_TEMPLATE_SYSCTL SILT_TEMPLATE "/sysctl" /* becomes /proc/sys */
#define SILT_TEMPLATE_EMPTY SILT_TEMPLATE "/empty"   /* covers a folder */
#define SILT_TEMPLATE_MASK SILT_TEMPLATE "/mask"     /* covers a file */
#define SILT_TEMPLATE_RESOLV SILT_TEMPLATE "/resolv.conf"
#define SILT_TEMPLATE_PUBLIC_RESOLV                                                                \
    SILT_TEMPLATE "/public.conf" /* of captive sandboxes: whom they ask does not matter */

/* In the folder `at`, while the machine's /proc and /sys can be seen. `kernels`: the folder of the
 * interpreters, or NULL; `resolver`: the text of every sandbox's /etc/resolv.conf. */
int silt_template_build(int at, const char *kernels, const char *resolver, struct silt_error *e);

/* One sandbox's own view of the template, read-only: a detached mount that belongs at SILT_TEMPLATE
 * in the sandbox's mount namespace. About 25 us and 6 KiB of kernel memory. Must be made outside of the
 * sandbox's user namespace, where device nodes would not work. */
int silt_template_copy(int *ret_mount, struct silt_error *e);
