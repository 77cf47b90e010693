/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"
#include "unit/base/unit.h"

static void encode(const char *text, size_t piece, struct silt_buf *b)
{
    struct silt_base64 x = {0};
    silt_slice rest = silt_slice_of(text);
    while (rest.len > 0) {
        size_t n = rest.len < piece ? rest.len : piece;
        silt_base64_encode(&x, b, (silt_slice){rest.data, n});
        rest.data += n;
        rest.len -= n;
    }
    silt_base64_encode_end(&x, b);
}

TEST(base64_of_the_rfc_in_pieces_of_any_size)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"},
                                           {"\xff\xfe\xfd>?", "//79Pj8="}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        for (size_t piece = 1; piece <= 7; piece++) {
            silt_auto_buf b;
            silt_buf_init(&b, 100);
            encode(pairs[i][0], piece, &b);
            assert_text(silt_buf_slice(&b), pairs[i][1]);
        }
}

TEST(what_is_encoded_is_decoded_again_in_pieces_of_any_size)
{
    char bytes[257], out[300];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 167);
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        silt_auto_buf b;
        struct silt_base64 x = {0};
        silt_buf_init(&b, 1000);
        silt_base64_encode(&x, &b, (silt_slice){bytes, len});
        silt_base64_encode_end(&x, &b);
        silt_slice text = silt_buf_slice(&b);
        assert_null(silt_base64_check(text));
        assert_int_equal(silt_base64_size(text), len);
        size_t made = 0;
        while (text.len > 0)
            made += silt_base64_decode(&text, out + made, 3 + len % 5);
        assert_int_equal(made, len);
        assert_memory_equal(out, bytes, len);
    }
}

TEST(base64_without_padding_is_fine_and_anything_else_is_not)
{
    char out[8];
    silt_slice text = SILT_LIT("Zm9vYg");
    assert_null(silt_base64_check(text));
    assert_int_equal(silt_base64_size(text), 4);
    assert_int_equal(silt_base64_decode(&text, out, sizeof(out)), 4);
    assert_memory_equal(out, "foob", 4);
    assert_string_equal(silt_base64_check(SILT_LIT("Zm9v!mFy")), "Invalid base64 characters");
    assert_string_equal(silt_base64_check(SILT_LIT("Zm9v\nmFy")), "Invalid base64 characters");
    assert_string_equal(silt_base64_check(SILT_LIT("Zm9v-_Fy")), "Invalid base64 characters");
    static const char *const bad[] = {
        "Z", "Zm9vY", "Zg=", "Zg==Zg==", "Z===", "=", "====", "Zm9v="};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_string_equal(silt_base64_check(silt_slice_of(bad[i])), "Invalid base64 padding");
}
