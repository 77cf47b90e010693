/* SPDX-License-Identifier: Apache-2.0 */
/* child: the steps common to all processes that silt-priv starts, between clone and exec. Nothing
 * here allocates, locks or logs. */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { SILT_CHILD_FDS_MAX = 64 };

/* Writes 0 to each `tasks` file (cgroup v1). */
int silt_child_join(const int *tasks, int count, struct silt_error *e);
/* Becomes root of the user namespace, in a session of its own, with default signals and umask
 * 022. */
int silt_child_become_root(struct silt_error *e);

/* The descriptors a program starts with. Add them in the order of their final numbers. */
struct silt_child_fds {
    int fds[SILT_CHILD_FDS_MAX];
    int count;
};
void silt_child_pass(struct silt_child_fds *p, int fd);
/* Moves fds[i] to descriptor first + i and marks everything above close-on-exec. *sync and *program
 * stay open until exec and get new numbers. */
int silt_child_place(const struct silt_child_fds *p, int first, int *sync, int *program,
                     struct silt_error *e);
