/* SPDX-License-Identifier: Apache-2.0 */
#include "base/digest.h"
#include "unit/base/unit.h"

#define ONE "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define TWO "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

TEST(digests_of_a_list_are_found_one_after_the_other)
{
    const char *list = " " ONE ",, " TWO ",";
    uint8_t got[SILT_DIGEST_BYTES];
    assert_true(silt_digest_next(&list, got));
    assert_int_equal(got[0], 0);
    assert_int_equal(got[31], 0xff);
    assert_true(silt_digest_next(&list, got));
    assert_int_equal(got[0], 0xff);
    assert_false(silt_digest_next(&list, got));
    assert_true(silt_digest_listed(ONE "," TWO, got));
    assert_false(silt_digest_listed(ONE, got));
    assert_false(silt_digest_listed("", got));
}

TEST(what_is_no_digest_is_passed_over)
{
    static const char *const lists[] = {"base", "*", ONE "0", "0" ONE, "\xff", ONE ONE,
                                        "0011223344556677889gaabbccddeeff00112233445566778899aabbccddeeff"};
    uint8_t got[SILT_DIGEST_BYTES];
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const char *list = lists[i];
        assert_false(silt_digest_next(&list, got));
    }
}
