/* SPDX-License-Identifier: Apache-2.0 */
/* parent: a process that ends with the one that forked it. */
#pragma once

#include <sys/types.h>

/* In a child: SIGKILL when `parent`, which forked us, dies. -1: it has died already, or the kernel
 * refuses; errno tells. The request is lost with a change of ids. */
int silt_parent_end_with(pid_t parent);
