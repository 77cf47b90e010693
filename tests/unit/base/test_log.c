/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/own.h"
#include "unit/base/unit.h"

TEST(a_quoted_value_stays_on_its_line)
{
    char out[SILT_LOG_QUOTE_SIZE];
    assert_string_equal(silt_log_quote(SILT_LIT("plain"), out), "plain");
    assert_string_equal(silt_log_quote(SILT_LIT("a b\n\"\\\x1b\0"), out),
                        "a\\x20b\\x0a\\x22\\x5c\\x1b\\x00");
    assert_string_equal(silt_log_quote(SILT_LIT("\xc3\xa4"), out), "\\xc3\\xa4");
}

TEST(a_long_value_is_cut_with_dots)
{
    char out[SILT_LOG_QUOTE_SIZE], in[1000];
    memset(in, '\n', sizeof(in));
    silt_log_quote((silt_slice){in, sizeof(in)}, out);
    size_t n = strlen(out);
    assert_in_range(n, SILT_LOG_QUOTE_SIZE - 10, SILT_LOG_QUOTE_SIZE - 1);
    assert_string_equal(out + n - 3, "...");
}

/* What `say` writes to stderr. */
static void capture(void (*say)(void), char *out, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int before = dup(STDERR_FILENO);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    say();
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    (void)close(before);
    (void)close(ends[1]);
    ssize_t n = read(ends[0], out, size - 1);
    (void)close(ends[0]);
    out[n > 0 ? n : 0] = 0;
}

static void say_two(void)
{
    silt_log_open("test", SILT_LOG_INFO);
    silt_log(SILT_LOG_DEBUG, "quiet", "x=%d", 1);
    silt_log(SILT_LOG_WARN, "exec.exit", "status=%d", 137);
}

TEST(a_line_is_an_event_with_fields)
{
    char got[500];
    capture(say_two, got, sizeof(got));
    assert_string_equal(got + strlen("2026-01-02T03:04:05.678Z"),
                        " warn test exec.exit status=137\n");
}

static void say_much(void)
{
    static char much[5000];
    memset(much, 'x', sizeof(much) - 1);
    silt_log(SILT_LOG_ERROR, "much", "%s", much);
}

TEST(a_line_that_is_too_long_is_cut_and_ends)
{
    char got[6000];
    capture(say_much, got, sizeof(got));
    assert_in_range(strlen(got), 2000, 2048);
    assert_int_equal(got[strlen(got) - 1], '\n');
}
