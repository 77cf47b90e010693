/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "unit/base/unit.h"

#include <errno.h>

static struct silt_error e;

TEST(a_failure_answers_minus_one_and_tells_why)
{
    assert_int_equal(silt_fail(&e, SILT_LIMIT, "command of %d bytes", 7), -1);
    assert_int_equal(e.code, SILT_LIMIT);
    assert_int_equal(e.sys, 0);
    assert_string_equal(e.text, "command of 7 bytes");
}

TEST(a_failed_syscall_is_told_with_its_errno)
{
    errno = ENOSPC;
    assert_int_equal(silt_fail_errno(&e, "write %s", "x"), -1);
    assert_int_equal(e.code, SILT_NO_SPACE);
    assert_int_equal(e.sys, ENOSPC);
    assert_string_equal(e.text, "write x: No space left on device");
}

TEST(a_read_that_ended_early_is_not_told_with_an_errno_of_something_else)
{
    errno = ENOSPC;
    assert_int_equal(silt_fail_read(&e, 0, "read %s", "x"), -1);
    assert_int_equal(e.code, SILT_INTERNAL);
    assert_int_equal(e.sys, 0);
    assert_string_equal(e.text, "read x: it ended early");
    errno = EIO;
    (void)silt_fail_read(&e, -1, "read %s", "x");
    assert_int_equal(e.sys, EIO);
    assert_string_equal(e.text, "read x: Input/output error");
}

TEST(the_code_follows_from_errno)
{
    static const struct {
        int sys;
        enum silt_code code;
    } rows[] = {
        {ENOENT, SILT_NOT_FOUND}, {EEXIST, SILT_CONFLICT}, {EDQUOT, SILT_NO_SPACE},
        {EPERM, SILT_DENIED},     {EMFILE, SILT_LIMIT},    {EPIPE, SILT_GONE},
        {EINVAL, SILT_INVALID},   {EIO, SILT_INTERNAL},    {ETIMEDOUT, SILT_TIMEOUT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        errno = rows[i].sys;
        (void)silt_fail_errno(&e, "x");
        assert_int_equal(e.code, rows[i].code);
    }
}

TEST(context_comes_first_and_keeps_the_code)
{
    errno = ENOENT;
    (void)silt_fail_errno(&e, "open cwd");
    assert_int_equal(silt_because(&e, "create sandbox %s", "s7"), -1);
    assert_int_equal(e.code, SILT_NOT_FOUND);
    assert_string_equal(e.text, "create sandbox s7: open cwd: No such file or directory");
}

TEST(long_stories_are_cut_and_terminated)
{
    char deep[600];
    memset(deep, 'x', sizeof(deep));
    deep[sizeof(deep) - 1] = 0;
    (void)silt_fail(&e, SILT_INTERNAL, "%s", deep);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    (void)silt_because(&e, "%s", deep);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    errno = EIO;
    (void)silt_fail_errno(&e, "%s", deep);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

TEST(every_code_has_a_name)
{
    for (int i = 0; i < SILT_CODE_MAX; i++)
        assert_non_null(silt_code_name((enum silt_code)i));
    assert_string_equal(silt_code_name(SILT_NO_SPACE), "no_space");
    assert_string_equal(silt_code_name(SILT_CODE_MAX), "unknown");
}

TEST(words_of_a_stranger_command_no_terminal_and_are_text)
{
    static const struct {
        const char *words, *shown;
    } rows[] = {
        {"plain \xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80",
         "plain \xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\x1b[2J\r\n\x7f", "?[2J???"},
        {"\xc2\x9b"
         "31m \xc2\xa0",
         "??31m \xc2\xa0"},
        {"\x9b\xff half \xe2\x82", "?? half ??"},
        {"\xc0\x9b \xe0\x80\x9b \xed\xa0\x80", "?? ??? ???"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "%s", rows[i].words);
        silt_error_show(text, strlen(text));
        assert_string_equal(text, rows[i].shown);
    }
}
