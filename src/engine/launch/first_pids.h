/* SPDX-License-Identifier: Apache-2.0 */
/* first_pids: the pid of each sandbox's first process, by slot: `<run>/first-pids`, mapped by
 * silt-priv and shared by its workers. All of its space is allocated when it is opened, so a start
 * can be recorded when neither the pool nor the disk has a byte left. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct silt_first_pids {
    int32_t *by_slot; /* NULL: not open */
    uint32_t slots;
};

/* `forget`: those of an earlier start are dropped. */
int silt_first_pids_open(struct silt_first_pids *p, const char *run_dir, uint32_t slots,
                         bool forget, struct silt_error *e);
/* In the machine's pid namespace. */
void silt_first_pids_set(const struct silt_first_pids *p, uint32_t slot, pid_t pid);
pid_t silt_first_pids_at(const struct silt_first_pids *p, uint32_t slot); /* 0: not recorded */
