/* SPDX-License-Identifier: Apache-2.0 */
/* timing: how long siltd's operations took, as histograms for `GET /metrics`. The registry owns
 * them; they begin empty with every siltd. Operations that failed are not counted. */
#pragma once

#include "base/buf.h"

struct silt_registry;

enum { SILT_TIMING_BOUNDS = 16 };

enum silt_timing_kind {
    SILT_TIMING_CREATE,
    SILT_TIMING_EXEC,
    SILT_TIMING_WAKE_PAUSED,
    SILT_TIMING_WAKE_STOPPED,
    SILT_TIMING_SNAPSHOT,
    SILT_TIMING_FORK,
    SILT_TIMING_MAX,
};

struct silt_timing {
    uint64_t counts[SILT_TIMING_BOUNDS + 1]; /* the last: longer than every bound */
    uint64_t sum_us;
};

/* An operation that began at begun_us of silt_clock_us has ended now. */
void silt_timing_end(struct silt_registry *r, enum silt_timing_kind kind, int64_t begun_us);
/* All of them in Prometheus' text format. */
void silt_timing_write(struct silt_buf *b, const struct silt_timing all[SILT_TIMING_MAX]);
