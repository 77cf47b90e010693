/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own.h"
#include "base/slice.h"
#include "unit/base/unit.h"

static struct silt_error e;

TEST(equality_looks_at_length_and_bytes)
{
    assert_true(silt_slice_eq(SILT_LIT("a\0b"), SILT_LIT("a\0b")));
    assert_false(silt_slice_eq(SILT_LIT("a"), SILT_LIT("ab")));
    assert_true(silt_slice_eq((silt_slice){NULL, 0}, SILT_LIT("")));
    assert_true(silt_slice_eq_secret(SILT_LIT("key"), SILT_LIT("key")));
    assert_false(silt_slice_eq_secret(SILT_LIT("key"), SILT_LIT("kez")));
    assert_false(silt_slice_eq_secret(SILT_LIT("key"), SILT_LIT("keys")));
}

TEST(case_is_ignored_for_ascii_letters_only)
{
    assert_true(silt_slice_ieq(SILT_LIT("Content-LENGTH"), SILT_LIT("content-length")));
    assert_false(silt_slice_ieq(SILT_LIT("["), SILT_LIT("{")));
    assert_false(silt_slice_ieq(SILT_LIT("\xc4"), SILT_LIT("\xe4")));
}

TEST(a_prefix_is_found)
{
    assert_true(silt_slice_starts(SILT_LIT("abc"), SILT_LIT("ab")));
    assert_true(silt_slice_starts(SILT_LIT("abc"), SILT_LIT("")));
    assert_false(silt_slice_starts(SILT_LIT("a"), SILT_LIT("ab")));
}

TEST(split_keeps_empty_fields)
{
    silt_slice rest = SILT_LIT(",a,,b,"), got;
    static const char *const want[] = {"", "a", "", "b", ""};
    for (size_t i = 0; i < SILT_COUNT(want); i++) {
        assert_true(silt_slice_split(&rest, ',', &got));
        assert_text(got, want[i]);
    }
    assert_false(silt_slice_split(&rest, ',', &got));
}

TEST(split_of_an_empty_text_is_one_empty_field)
{
    silt_slice rest = SILT_LIT(""), got;
    assert_true(silt_slice_split(&rest, ',', &got));
    assert_int_equal(got.len, 0);
    assert_false(silt_slice_split(&rest, ',', &got));
}

TEST(trim_takes_spaces_and_tabs_from_both_ends)
{
    assert_text(silt_slice_trim(SILT_LIT(" \t a b\t ")), "a b");
    assert_text(silt_slice_trim(SILT_LIT(" \t")), "");
    assert_text(silt_slice_trim(SILT_LIT("\na")), "\na");
}

TEST(numbers_are_plain_decimals_within_bounds)
{
    uint64_t v = 0;
    assert_int_equal(silt_slice_to_u64(SILT_LIT("0"), 0, 9, &v, &e), 0);
    assert_int_equal(silt_slice_to_u64(SILT_LIT("18446744073709551615"), 0, UINT64_MAX, &v, &e), 0);
    assert_true(v == UINT64_MAX);
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "01",
                                      "1x",
                                      "0x1",
                                      "10",
                                      "18446744073709551616",
                                      "99999999999999999999999"};
    for (size_t i = 0; i < SILT_COUNT(bad); i++) {
        assert_int_equal(silt_slice_to_u64(silt_slice_of(bad[i]), 0, 9, &v, &e), -1);
        assert_int_equal(e.code, SILT_INVALID);
    }
    assert_int_equal(silt_slice_to_u64(SILT_LIT("1"), 2, 9, &v, &e), -1);
}

TEST(a_c_string_has_no_nul_and_fits)
{
    char out[4];
    assert_int_equal(silt_slice_to_cstr(SILT_LIT("abc"), out, sizeof(out), &e), 0);
    assert_string_equal(out, "abc");
    assert_int_equal(silt_slice_to_cstr(SILT_LIT("abcd"), out, sizeof(out), &e), -1);
    assert_int_equal(silt_slice_to_cstr(SILT_LIT("a\0b"), out, sizeof(out), &e), -1);
    char path[PATH_MAX];
    assert_int_equal(silt_slice_to_path(SILT_LIT(""), path, &e), -1);
    assert_int_equal(silt_slice_to_path(SILT_LIT("/tmp"), path, &e), 0);
}

TEST(utf8_is_the_table_of_rfc_3629)
{
    static const char *const good[] = {"",
                                       "plain",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe2\x82",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80",
                                      "\xff",
                                      "a\xe2\x28\xa1"};
    for (size_t i = 0; i < SILT_COUNT(good); i++)
        assert_true(silt_slice_is_utf8(silt_slice_of(good[i])));
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        assert_false(silt_slice_is_utf8(silt_slice_of(bad[i])));
}

TEST(nul_is_in_no_set)
{
    assert_true(silt_is_any('b', "abc"));
    assert_false(silt_is_any('d', "abc"));
    assert_false(silt_is_any(0, "abc"));
    assert_false(silt_is_any(0, ""));
}
