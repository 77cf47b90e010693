/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/command.h"
#include "unit/base/unit.h"

static struct silt_error e;

TEST(one_word_is_shell_text_and_several_are_quoted)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_command_join(&(struct silt_words){{"ls | wc -l"}, 1}, &b);
    assert_text(silt_buf_slice(&b), "ls | wc -l");
    silt_buf_clear(&b);
    silt_command_join(&(struct silt_words){{"echo", "a b", "it's", ""}, 4}, &b);
    assert_text(silt_buf_slice(&b), "echo 'a b' 'it'\\''s' ''");
}

TEST(times_have_units)
{
    int64_t ms;
    assert_int_equal(silt_command_time("--timeout", "1.5m", &ms, &e), 0);
    assert_int_equal(ms, 90000);
    assert_int_equal(silt_command_time("--timeout", "2", &ms, &e), 0);
    assert_int_equal(ms, 2000);
    assert_int_equal(silt_command_time("--timeout", "250ms", &ms, &e), 0);
    assert_int_equal(ms, 250);
    static const char *const wrong[] = {"", "x", "5 s", "-1s", "0", "nan", "inf", "5d"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(silt_command_time("--timeout", wrong[i], &ms, &e), -1);
}

TEST(a_variable_needs_a_name_and_a_value)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_buf_add_byte(&b, '{');
    assert_int_equal(silt_command_add_env(&b, &(struct silt_words){{"A=b=c", "B="}, 2}, &e), 0);
    assert_text(silt_buf_slice(&b), "{\"env\":{\"A\":\"b=c\",\"B\":\"\"}");
    assert_int_equal(silt_command_add_env(&b, &(struct silt_words){{"A"}, 1}, &e), -1);
    assert_int_equal(silt_command_add_env(&b, &(struct silt_words){{"=x"}, 1}, &e), -1);
}
