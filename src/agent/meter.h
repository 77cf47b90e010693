/* SPDX-License-Identifier: Apache-2.0 */
/* meter: what the kernel counted against the sandbox: kills for lack of memory and refused forks. A
 * counter whose descriptor is missing stands still. */
#pragma once

#include <stdint.h>

struct silt_meter {
    int oom, peak, pids; /* borrowed descriptors */
};

struct silt_meter_mark {
    uint64_t oom_kills;
    uint64_t refused_forks;
};

struct silt_meter_mark silt_meter_read(const struct silt_meter *m);
uint64_t silt_meter_peak(const struct silt_meter *m); /* bytes; 0: unknown */
