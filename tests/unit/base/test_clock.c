/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "unit/base/unit.h"

TEST(iso_time_has_milliseconds_and_zone)
{
    char out[SILT_ISO_SIZE];
    silt_clock_iso(0, out);
    assert_string_equal(out, "1970-01-01T00:00:00.000Z");
    silt_clock_iso(1700000000123, out);
    assert_string_equal(out, "2023-11-14T22:13:20.123Z");
    silt_clock_iso(1709164800000 - 1, out);
    assert_string_equal(out, "2024-02-28T23:59:59.999Z");
}

TEST(monotonic_time_does_not_go_back)
{
    int64_t before = silt_clock_us();
    for (int i = 0; i < 1000; i++) {
        int64_t after = silt_clock_us();
        assert_true(after >= before);
        before = after;
    }
    assert_true(silt_clock_wall_ms() > 1600000000000);
}
