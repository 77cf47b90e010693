/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_memory: the process of silt-priv that limits the kernel memory of each sandbox's TCP sockets.
 * The kernel alone does not: it charges a connection to a control group only when it is accepted,
 * and accepts the first packet of an empty queue whatever the limit. The process reads the
 * machine's total many times a second and examines a sandbox's group and network namespace only if
 * it may be above its limit. It resets the connections that hold the most and kills the processes
 * of a guest that stays above the limit. It keeps no state that its successor would need. */
#pragma once

#include "priv/helper.h"
#include "wire/tcp_memory.h"

/* Counters of what it did, for siltd: `<run>/tcp`, in shared memory. */
int silt_tcp_memory_open(const char *run_dir, uint32_t slots, struct silt_tcp_sums **ret,
                         struct silt_error *e);
/* Runs until the process is killed. */
_Noreturn void silt_tcp_memory_run(const struct silt_priv_helper *u, struct silt_tcp_sums *sums);
