/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_memory: the counters of silt-priv's TCP watcher. It writes `<run>/tcp`: these sums, then one
 * record per slot; siltd reads it. */
#pragma once

#include <stdint.h>

/* Since the run directory was created. */
struct silt_tcp_sums {
    uint64_t connections; /* reset */
    uint64_t listeners;   /* closed, with their unaccepted connections */
    uint64_t kills;       /* kills of all processes of a guest */
};

/* The last time a sandbox in this slot was above its limit: perhaps not the one now in the slot. */
struct silt_tcp_record {
    int64_t at_ms;     /* wall clock; 0: never */
    int64_t killed_ms; /* monotonic clock: when its processes were killed; 0: not killed */
    uint64_t used, limit;
};
