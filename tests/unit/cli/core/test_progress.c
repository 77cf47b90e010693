/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/progress.h"
#include "unit/base/unit.h"

static const int64_t second = 1000 * 1000;

static const char *line_of(const char *name, uint64_t done, uint64_t total, size_t width)
{
    static char line[SILT_PROGRESS_LINE_SIZE];
    struct silt_progress p = {.done = done, .total = total};
    (void)snprintf(p.name, sizeof(p.name), "%s", name);
    silt_progress_line(&p, 2 * second, width, line);
    return line;
}

TEST(a_line_has_name_percent_amount_speed_and_time_left)
{
    assert_string_equal(line_of("movie.mp4", 512 << 20, 2048ULL << 20, 79),
                        "movie.mp4   25 %  [#####...............]     512 MiB   256.0 MiB/s  0:06 "
                        "left  ");
}

TEST(without_a_total_there_is_no_percent_and_no_bar)
{
    assert_string_equal(line_of("src", 3 << 20, 0, 79),
                        "src     3.0 MiB     1.5 MiB/s  0:02 in all");
}

TEST(the_end_tells_the_whole_time)
{
    const char *line = line_of("a", 1 << 20, 1 << 20, 79);
    assert_non_null(strstr(line, "100 %"));
    assert_non_null(strstr(line, "0:02 in all"));
}

TEST(more_than_was_guessed_stays_at_hundred_percent)
{
    assert_non_null(strstr(line_of("a", 5, 4, 79), "100 %"));
}

TEST(the_bar_stays_as_wide_as_it_was)
{
    size_t before = strcspn(line_of("a", 1 << 20, 2 << 20, 79), "]");
    assert_int_equal(strcspn(line_of("a", 2 << 20, 2 << 20, 79), "]"), before);
}

TEST(hours_are_told_as_hours)
{
    assert_non_null(strstr(line_of("a", 1 << 20, 4 * 3600ULL << 19, 99), "3:59:58 left"));
    assert_non_null(strstr(line_of("a", 1, UINT64_MAX, 99), "99:59:59 left"));
}

TEST(a_line_is_never_wider_than_the_terminal)
{
    char name[SILT_PROGRESS_NAME_SIZE];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    for (size_t width = 0; width < 300; width++) {
        assert_true(strlen(line_of(name, 1 << 20, 1 << 30, width)) <= width);
        assert_true(strlen(line_of("a", UINT64_MAX, 0, width)) <= width);
    }
}
