/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"
#include "unit/base/unit.h"

static size_t unlike(const char *given, const char *known)
{
    return silt_nearest_unlikeness(silt_slice_of(given), silt_slice_of(known));
}

TEST(distance_counts_letters_and_swaps)
{
    assert_int_equal(silt_nearest_distance(SILT_LIT(""), SILT_LIT("")), 0);
    assert_int_equal(silt_nearest_distance(SILT_LIT(""), SILT_LIT("abc")), 3);
    assert_int_equal(silt_nearest_distance(SILT_LIT("abc"), SILT_LIT("abc")), 0);
    assert_int_equal(silt_nearest_distance(SILT_LIT("netwrok"), SILT_LIT("network")), 1);
    assert_int_equal(silt_nearest_distance(SILT_LIT("kitten"), SILT_LIT("sitting")), 3);
    assert_int_equal(silt_nearest_distance(SILT_LIT("ab"), SILT_LIT("ba")), 1);
}

TEST(another_spelling_is_the_same_name)
{
    assert_int_equal(unlike("sleep_after", "sleepAfter"), 0);
    assert_int_equal(unlike("SESSIONID", "sessionId"), 0);
}

TEST(a_missing_unit_is_nearer_than_a_letter)
{
    assert_true(unlike("memory", "memoryMiB") < unlike("memory", "memroy"));
    assert_true(unlike("timeout", "timeoutMs") != SIZE_MAX);
    assert_true(unlike("env_vars", "env") != SIZE_MAX);
}

TEST(other_names_are_not_alike)
{
    assert_int_equal(unlike("banana", "network"), SIZE_MAX);
    assert_int_equal(unlike("id", "port"), SIZE_MAX);
    assert_int_equal(unlike("", "port"), SIZE_MAX);
}

TEST(long_names_are_near_to_nothing)
{
    char name[SILT_NEAREST_MAX + 1];
    memset(name, 'a', sizeof(name));
    silt_slice s = {name, sizeof(name)};
    assert_int_equal(silt_nearest_distance(s, s), SIZE_MAX);
    assert_int_equal(silt_nearest_unlikeness(s, SILT_LIT("aaa")), SIZE_MAX);
    s.len = SILT_NEAREST_MAX;
    assert_int_equal(silt_nearest_distance(s, s), 0);
}
