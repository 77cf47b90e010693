/* SPDX-License-Identifier: Apache-2.0 */
/* template: the files that are the same in every sandbox: /dev, copies of the few sysfs and sysctl
 * files that programs read, and masks for files of procfs. silt-priv builds it once in its
 * mount_stage. Each sandbox gets an overlay of it and so has its own inodes: an inotify watch or a
 * flock on a shared /dev/null would be visible to other sandboxes. */
#pragma once

#include "base/error.h"

#define SILT_TEMPLATE "/template"
#define SILT_TEMPLATE_DEV SILT_TEMPLATE "/dev"
#define SILT_TEMPLATE_SYS SILT_TEMPLATE "/sys"
#define SILT_TEMPLATE_SYSCTL SILT_TEMPLATE "/sysctl" /* becomes /proc/sys */
#define SILT_TEMPLATE_EMPTY SILT_TEMPLATE "/empty"   /* masks a directory */
#define SILT_TEMPLATE_MASK SILT_TEMPLATE "/mask"     /* masks a file */
#define SILT_TEMPLATE_RESOLV SILT_TEMPLATE "/resolv.conf"
/* For captive sandboxes: the server does not matter, queries are intercepted. */
#define SILT_TEMPLATE_PUBLIC_RESOLV SILT_TEMPLATE "/public.conf"

/* Builds the template in the directory `at`, while the machine's /proc and /sys are visible.
 * `kernels`: directory of the interpreters, or NULL; `resolver`: text of every sandbox's
 * /etc/resolv.conf. */
int silt_template_build(int at, const char *kernels, const char *resolver, struct silt_error *e);

/* Makes one sandbox's read-only view of the template: a detached mount, to be attached at
 * SILT_TEMPLATE in the sandbox's mount namespace. Costs about 25 us and 6 KiB of kernel memory.
 * Must be made outside the sandbox's user namespace, where device nodes would not work. */
int silt_template_copy(int *ret_mount, struct silt_error *e);
