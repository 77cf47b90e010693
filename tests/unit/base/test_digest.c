/* SPDX-License-Identifier: Apache-2.0 */
#include "base/digest.h"
#include "unit/base/unit.h"

#define ONE "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

TEST(a_digest_is_read)
{
    uint8_t got[SILT_DIGEST_BYTES];
    assert_true(silt_digest_parse(SILT_LIT(ONE), got));
    assert_int_equal(got[0], 0);
    assert_int_equal(got[1], 0x11);
    assert_int_equal(got[31], 0xff);
}

TEST(what_is_no_digest_is_refused)
{
    static const char *const texts[] = {
        "",
        "base",
        "*",
        ONE "0",
        "0" ONE,
        "\xff",
        ONE ONE,
        " " ONE,
        "0011223344556677889gaabbccddeeff00112233445566778899aabbccddeeff",
        "001122334455667788 9aabbccddeeff00112233445566778899aabbccddeeff",
        "00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF"};
    uint8_t got[SILT_DIGEST_BYTES];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(silt_digest_parse(silt_slice_of(texts[i]), got));
}
