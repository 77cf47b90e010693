/* SPDX-License-Identifier: Apache-2.0 */
/* clock: monotonic time for timeouts, wall-clock time for responses and logs. */
#pragma once

#include <stdint.h>

int64_t silt_clock_ms(void);      /* monotonic */
int64_t silt_clock_us(void);      /* monotonic */
int64_t silt_clock_wall_ms(void); /* since 1970, UTC */

enum { SILT_ISO_SIZE = 25 }; /* 2026-01-02T03:04:05.678Z and its terminator */
void silt_clock_iso(int64_t wall_ms, char out[SILT_ISO_SIZE]);
