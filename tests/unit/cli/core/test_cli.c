/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/cli.h"
#include "unit/base/unit.h"

TEST(sizes_read_as_people_say_them)
{
    char text[SILT_CLI_SIZE_TEXT];
    assert_string_equal(silt_cli_size(0, text), "0 B");
    assert_string_equal(silt_cli_size(1023, text), "1023 B");
    assert_string_equal(silt_cli_size(1536, text), "1.5 KiB");
    assert_string_equal(silt_cli_size(4LL << 30, text), "4.0 GiB");
    assert_string_equal(silt_cli_size(INT64_MAX, text), "8388608 TiB");
}

TEST(a_word_in_a_path_is_encoded)
{
    char path[64];
    struct silt_error e;
    assert_int_equal(silt_cli_path(path, sizeof(path), "/a/", "x/ y?\xc3\xa4", "/b", &e), 0);
    assert_string_equal(path, "/a/x%2F%20y%3F%C3%A4/b");
    assert_int_equal(silt_cli_path(path, 8, "/a/", "abcdef", "/b", &e), -1);
}

TEST(json_comes_out_as_it_went_in)
{
    silt_slice text = SILT_LIT("{\"a\":[1,-2,0.5,true,false,null,\"x\\n\"],\"b\":{}}");
    const struct silt_json *value;
    struct silt_error e;
    silt_auto_arena arena;
    silt_auto_buf out;
    silt_arena_init(&arena, 1 << 20);
    silt_buf_init(&out, 1 << 20);
    assert_int_equal(silt_json_read(&arena, text, &value, &e), 0);
    silt_cli_write(&out, value);
    assert_slice(silt_buf_slice(&out), text);
}

TEST(missing_values_have_harmless_defaults)
{
    const struct silt_json *value;
    struct silt_error e;
    silt_auto_arena arena;
    silt_arena_init(&arena, 1 << 20);
    assert_int_equal(
        silt_json_read(&arena, SILT_LIT("{\"n\":\"text\",\"f\":2.9,\"big\":1e300}"), &value, &e),
        0);
    assert_int_equal(silt_cli_number(value, "n"), 0);
    assert_int_equal(silt_cli_number(value, "f"), 2);
    assert_int_equal(silt_cli_number(value, "big"), 0);
    assert_int_equal(silt_cli_text(value, "f").len, 0);
    assert_false(silt_cli_true(NULL, "x"));
}
