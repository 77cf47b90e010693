/* SPDX-License-Identifier: Apache-2.0 */
/* child: steps that every process of ours takes between clone and exec. Nothing here allocates,
 * locks or logs. */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { SILT_CHILD_FDS_MAX = 64 };

/* Writes 0 to each `tasks` file (cgroup v1). */
int silt_child_join(const int *tasks, int count, struct silt_error *e);
/* Root of the user namespace, a terminal session of its own, default signals, umask 022. */
int silt_child_become_root(struct silt_error *e);

/* The descriptors a program is born with; add them in the order of their final numbers. */
struct silt_child_fds {
    int fds[SILT_CHILD_FDS_MAX];
    int count;
};
void silt_child_pass(struct silt_child_fds *p, int fd);
/* fds[i] becomes descriptor first + i; everything above closes at exec. *sync and *program stay
 * open until then and get new numbers. */
int silt_child_place(const struct silt_child_fds *p, int first, int *sync, int *program,
                     struct silt_error *e);
