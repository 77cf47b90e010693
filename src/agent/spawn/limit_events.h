/* SPDX-License-Identifier: Apache-2.0 */
/* limit_events: the kernel's counters of OOM kills and refused forks in the sandbox. A counter
 * without a descriptor never changes. */
#pragma once

#include <stdint.h>

struct silt_limit_events {
    int oom, peak, pids; /* borrowed descriptors */
};

struct silt_limit_events_mark {
    uint64_t oom_kills;
    uint64_t refused_forks;
};

struct silt_limit_events_mark silt_limit_events_read(const struct silt_limit_events *m);
uint64_t silt_limit_events_peak(const struct silt_limit_events *m); /* bytes; 0: unknown */
