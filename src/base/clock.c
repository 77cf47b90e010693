/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec t;
    (void)clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t silt_clock_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t silt_clock_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

int64_t silt_clock_wall_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

void silt_clock_iso(int64_t wall_ms, char out[SILT_ISO_SIZE])
{
    time_t seconds = wall_ms / 1000;
    struct tm t;
    (void)gmtime_r(&seconds, &t);
    char text[64];
    (void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", t.tm_year + 1900,
                   t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, (int)(wall_ms % 1000));
    (void)snprintf(out, SILT_ISO_SIZE, "%.24s", text);
}
