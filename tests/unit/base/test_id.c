/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"
#include "base/own.h"
#include "unit/base/unit.h"

static struct silt_error e;

TEST(ids_that_callers_use_are_taken)
{
    char longest[SILT_ID_MAX];
    memset(longest, 'x', sizeof(longest));
    static const char *const good[] = {
        "a", "A1", "session-1700000000000-0.123", "a_b", "_", "0", "www2", "x.y-z"};
    for (size_t i = 0; i < SILT_COUNT(good); i++)
        assert_int_equal(silt_id_check(silt_slice_of(good[i]), &e), 0);
    assert_int_equal(silt_id_check((silt_slice){longest, sizeof(longest)}, &e), 0);
}

TEST(ids_that_could_be_something_else_are_refused)
{
    char longer[SILT_ID_MAX + 1];
    memset(longer, 'x', sizeof(longer));
    static const silt_slice bad[] = {
        {"", 0},         {"-a", 2},   {"a-", 2},  {".a", 2},  {"a.", 2},    {"a..b", 4},
        {"..", 2},       {".", 1},    {"a/b", 3}, {"a b", 3}, {"a\n", 2},   {"a\0b", 3},
        {"\xc3\xa4", 2}, {"a%2e", 4}, {"www", 3}, {"API", 3}, {"Admin", 5}, {"cloudflare", 10},
    };
    for (size_t i = 0; i < SILT_COUNT(bad); i++) {
        assert_int_equal(silt_id_check(bad[i], &e), -1);
        assert_int_equal(e.code, SILT_INVALID);
    }
    assert_int_equal(silt_id_check((silt_slice){longer, sizeof(longer)}, &e), -1);
}

TEST(a_host_name_is_the_first_63_with_dashes)
{
    char out[SILT_HOSTNAME_SIZE], longest[SILT_ID_MAX];
    silt_id_hostname(SILT_LIT("session_1.x"), out);
    assert_string_equal(out, "session-1-x");
    memset(longest, 'y', sizeof(longest));
    silt_id_hostname((silt_slice){longest, sizeof(longest)}, out);
    assert_int_equal(strlen(out), 63);
}

TEST(image_names_are_lower_case_words)
{
    static const char *const good[] = {"base", "node-22", "a", "python3.11_slim"};
    static const char *const bad[] = {"", "Base", "1a", "-a", "a/b", "a b", "ä"};
    for (size_t i = 0; i < SILT_COUNT(good); i++)
        assert_int_equal(silt_id_check_image(silt_slice_of(good[i]), &e), 0);
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        assert_int_equal(silt_id_check_image(silt_slice_of(bad[i]), &e), -1);
}

TEST(environment_names_are_identifiers)
{
    assert_true(silt_id_is_env_name(SILT_LIT("PATH")));
    assert_true(silt_id_is_env_name(SILT_LIT("_x1")));
    static const silt_slice bad[] = {{"", 0},    {"1A", 2},  {"A=B", 3},
                                     {"A-B", 3}, {"A\0", 2}, {"A B", 3}};
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        assert_false(silt_id_is_env_name(bad[i]));
}

TEST(random_ids_are_base32_and_differ)
{
    char a[33], b[33];
    silt_id_random(a, 32);
    silt_id_random(b, 32);
    assert_int_equal(strspn(a, "abcdefghijklmnopqrstuvwxyz234567"), 32);
    assert_int_equal(strlen(a), 32);
    assert_string_not_equal(a, b);
}
