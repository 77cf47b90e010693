/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/session_state.h"
#include "base/own.h"
#include "unit/base/unit.h"

#define ENV(text) ((silt_slice){text, sizeof(text) - 1})

static void parses(const char *text, silt_slice want)
{
    struct silt_error e;
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    assert_int_equal(silt_session_state_parse(silt_slice_of(text), &b, &e), 0);
    assert_int_equal(b.len, want.len);
    assert_true(want.len == 0 || memcmp(b.data, want.data, want.len) == 0);
}

static void refuses(const char *text)
{
    struct silt_error e;
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    assert_int_equal(silt_session_state_parse(silt_slice_of(text), &b, &e), -1);
}

TEST(what_bash_prints_becomes_variables)
{
    parses("", ENV(""));
    parses("declare -x A=\"1\"\ndeclare -rx B=\"\"\n", ENV("A=1\0B=\0"));
    parses("declare -x Q=\"a\\\"b\\$c\\`d\\\\e\"", ENV("Q=a\"b$c`d\\e\0"));
    parses("declare -x L=\"one\ntwo\"\ndeclare -ix N=\"5\"\n", ENV("L=one\ntwo\0N=5\0"));
    parses("declare -x E=$'a\\n\\t\\'\\\\\\001\\377\\E'\n", ENV("E=a\n\t'\\\1\377\033\0"));
}

TEST(what_is_the_shells_own_or_has_no_value_is_left_out)
{
    parses("declare -x PWD=\"/\"\ndeclare -x OLDPWD\ndeclare -x SHLVL=\"1\"\ndeclare -x _=\"x\"\n"
           "declare -ax L=([0]=\"a\")\ndeclare -x A=\"1\"\n",
           ENV("A=1\0"));
}

TEST(anything_else_is_refused)
{
    static const char *const wrong[] = {
        "A=1\n",
        "declare -x\n",
        "declare -x A=1\n",
        "declare -x A=\"1\n",
        "declare -x A=\"1\\",
        "declare -x A=$'1\n",
        "declare -x A=$'\\q'\n",
        "declare -x A=$'\\000'\n",
        "declare -x A=$'\\777'\n",
        "declare -x 1A=\"1\"\n",
        "declare -x A B=\"1\"\n",
        "declare -x A=\"1\" extra\n",
        "export A=\"1\"\n",
    };
    for (size_t i = 0; i < SILT_COUNT(wrong); i++)
        refuses(wrong[i]);
}

TEST(a_text_larger_than_the_limit_is_refused)
{
    struct silt_error e;
    silt_auto_buf b;
    silt_buf_init(&b, 4);
    assert_int_equal(silt_session_state_parse(SILT_LIT("declare -x LONG=\"value\"\n"), &b, &e), -1);
    assert_int_equal(e.code, SILT_LIMIT);
}

TEST(only_what_differs_is_kept_and_applied)
{
    silt_slice base = ENV("A=1\0B=1\0GONE=1\0");
    silt_slice now = ENV("A=1\0B=2\0C=3\0D=old\0");
    silt_auto_buf kept, env;
    silt_buf_init(&kept, 4096);
    silt_buf_init(&env, 4096);
    silt_session_state_diff(now, base, ENV("D=old\0"), &kept);
    assert_int_equal(kept.len, 13);
    assert_memory_equal(kept.data, "B=2\0C=3\0GONE\0", 13);
    silt_buf_add(&env, ENV("A=9\0B=9\0GONE=9\0D=new\0"));
    silt_session_state_apply(&env, silt_buf_slice(&kept));
    assert_int_equal(env.len, 18);
    assert_memory_equal(env.data, "A=9\0D=new\0B=2\0C=3\0", 18);
}
