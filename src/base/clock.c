/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <string.h>
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

static void put_digits(char *at, int value, int digits)
{
    for (int i = digits - 1; i >= 0; i--, value /= 10)
        at[i] = (char)('0' + value % 10);
}

/* Without printf, which would be most of the cost: every response and log line has a time. */
void silt_clock_iso(int64_t wall_ms, char out[SILT_ISO_SIZE])
{
    time_t seconds = wall_ms / 1000;
    struct tm t;
    (void)gmtime_r(&seconds, &t);
    memcpy(out, "0000-00-00T00:00:00.000Z", SILT_ISO_SIZE);
    put_digits(out, t.tm_year + 1900, 4);
    put_digits(out + 5, t.tm_mon + 1, 2);
    put_digits(out + 8, t.tm_mday, 2);
    put_digits(out + 11, t.tm_hour, 2);
    put_digits(out + 14, t.tm_min, 2);
    put_digits(out + 17, t.tm_sec, 2);
    put_digits(out + 20, (int)(wall_ms % 1000), 3);
}
