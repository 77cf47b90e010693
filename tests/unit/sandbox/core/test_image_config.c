/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/image_config.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <stdio.h>
#include <time.h>

enum { ARENA_MAX = 16 << 20 };

static void read_env(const char *json, char *ret, size_t size)
{
    silt_auto_arena a = {0};
    struct silt_image_config c;
    struct silt_error e;
    silt_arena_init(&a, ARENA_MAX);
    if (silt_image_config_read(&a, silt_slice_of(json), &c, &e) < 0)
        fail_msg("%s", e.text);
    assert_true(c.env.len < size);
    for (size_t i = 0; i < c.env.len; i++)
        ret[i] = c.env.data[i] == 0 ? ';' : c.env.data[i];
    ret[c.env.len] = 0;
}

TEST(the_later_variable_of_a_name_counts)
{
    char env[64];
    read_env("{\"Env\":[\"A=1\",\"B=2\",\"A=3\",\"C=\"]}", env, sizeof(env));
    assert_string_equal(env, "B=2;A=3;C=;");
}

TEST(variables_that_no_shell_could_use_are_left_out)
{
    char env[64];
    read_env("{\"Env\":[\"a b=1\",\"=2\",\"OK=3\"]}", env, sizeof(env));
    assert_string_equal(env, "OK=3;");
}

TEST(what_is_no_variable_is_refused)
{
    silt_auto_arena a = {0};
    struct silt_image_config c;
    struct silt_error e;
    silt_arena_init(&a, ARENA_MAX);
    assert_int_equal(silt_image_config_read(&a, SILT_LIT("{\"Env\":[\"A=1\",\"none\"]}"), &c, &e),
                     -1);
    assert_int_equal(e.code, SILT_INVALID);
    assert_non_null(strstr(e.text, "'none'"));
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The quickest of several: what others do on this machine only adds. */
static int64_t cost_of(int variables)
{
    silt_auto_buf json = {0};
    int64_t best = INT64_MAX;
    silt_buf_init(&json, SILT_IMAGE_CONFIG_MAX);
    silt_buf_add(&json, SILT_LIT("{\"Env\":["));
    for (int i = 0; i < variables; i++)
        silt_buf_addf(&json, "%s\"NAME_%d=%048d\"", i > 0 ? "," : "", i, i);
    silt_buf_add(&json, SILT_LIT("]}"));
    assert_false(json.broken);
    for (int i = 0; i < 5; i++) {
        silt_auto_arena a = {0};
        struct silt_image_config c;
        struct silt_error e;
        silt_arena_init(&a, ARENA_MAX);
        int64_t begin = cpu_ns();
        assert_int_equal(silt_image_config_read(&a, silt_buf_slice(&json), &c, &e), 0);
        int64_t took = cpu_ns() - begin;
        best = took < best ? took : best;
    }
    return best;
}

TEST(eight_times_the_variables_do_not_take_the_square_of_that)
{
    assert_true(cost_of(3600) < 32 * cost_of(450));
}
