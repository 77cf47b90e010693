/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json.h"
#include "unit/base/unit.h"

#include <float.h>
#include <math.h>

static struct silt_buf out;

static void start(void)
{
    silt_buf_fini(&out);
    silt_buf_init(&out, 1 << 20);
}

TEST(commas_are_put_where_they_belong)
{
    start();
    silt_json_open(&out, '{');
    silt_json_key(&out, SILT_LIT("a"));
    silt_json_i64(&out, -1);
    silt_json_key(&out, SILT_LIT("b"));
    silt_json_open(&out, '[');
    silt_json_bool(&out, true);
    silt_json_bool(&out, false);
    silt_json_null(&out);
    silt_json_u64(&out, UINT64_MAX);
    silt_json_string(&out, SILT_LIT("x:"));
    silt_json_string(&out, SILT_LIT("{"));
    silt_json_double(&out, -1.5);
    silt_json_double(&out, -2.5);
    silt_json_i64(&out, -3);
    silt_json_open(&out, '{');
    silt_json_close(&out, '}');
    silt_json_open(&out, '[');
    silt_json_close(&out, ']');
    silt_json_raw(&out, SILT_LIT("{\"r\":1}"));
    silt_json_close(&out, ']');
    silt_json_key(&out, SILT_LIT("c"));
    silt_json_null(&out);
    silt_json_close(&out, '}');
    assert_text(
        silt_buf_slice(&out),
        "{\"a\":-1,\"b\":[true,false,null,18446744073709551615,\"x:\",\"{\",-1.5,-2.5,-3,{},[],"
        "{\"r\":1}],\"c\":null}");
}

TEST(a_document_may_stand_after_other_text)
{
    start();
    silt_buf_add(&out, SILT_LIT("data: "));
    silt_json_open(&out, '{');
    silt_json_close(&out, '}');
    assert_text(silt_buf_slice(&out), "data: {}");
}

TEST(integers_are_written_to_their_ends)
{
    start();
    silt_json_open(&out, '[');
    silt_json_i64(&out, INT64_MIN);
    silt_json_i64(&out, INT64_MAX);
    silt_json_i64(&out, 0);
    silt_json_u64(&out, 0);
    silt_json_close(&out, ']');
    assert_text(silt_buf_slice(&out), "[-9223372036854775808,9223372036854775807,0,0]");
}

static void assert_double(double v, const char *want)
{
    start();
    silt_json_double(&out, v);
    assert_text(silt_buf_slice(&out), want);
}

TEST(doubles_are_short_and_read_back_the_same)
{
    assert_double(0.1, "0.1");
    assert_double(1.0 / 3, "0.3333333333333333");
    assert_double(100, "100");
    assert_double(1e300, "1e+300");
    assert_double(5e-324, "5e-324");
    assert_double(-0.0, "-0.0");
    assert_double(0.0, "0");
    assert_double(DBL_MAX, "1.7976931348623157e+308");
    assert_double(0.1 + 0.2, "0.30000000000000004");
    assert_double((double)NAN, "null");
    assert_double(-(double)INFINITY, "null");
}

TEST(random_doubles_survive_a_round_trip)
{
    uint64_t bits = 88172645463325252U;
    for (int i = 0; i < 20000; i++) {
        double v;
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&v, &bits, sizeof(v));
        if (!isfinite(v))
            continue;
        silt_auto_arena arena;
        const struct silt_json *got;
        struct silt_error e;
        silt_arena_init(&arena, 1 << 16);
        start();
        silt_json_double(&out, v);
        assert_int_equal(silt_json_read(&arena, silt_buf_slice(&out), &got, &e), 0);
        double back = got->type == SILT_JSON_INT ? (double)got->integer : got->number;
        assert_memory_equal(&back, &v, sizeof(v));
    }
}

TEST(what_must_be_escaped_is)
{
    start();
    silt_json_string(&out, SILT_LIT("\"\\/\b\f\n\r\t\x01\x1f\x7f\0ä€😀"));
    assert_text(silt_buf_slice(&out), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\u0000ä€😀\"");
}

TEST(ill_formed_bytes_become_replacement_characters)
{
    /* As TextDecoder does: one for each maximal part (Unicode 15, 3.9, table 3-8 and its
     * neighbours). */
    static const struct {
        const char *bytes, *want;
    } rows[] = {
        {"\xff", "\xef\xbf\xbd"},
        {"a\x80z", "a\xef\xbf\xbdz"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe0\x80\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x91\x92\x93", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41",
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\x41"},
        {"\xe2\x82", "\xef\xbf\xbd"},
        {"\xf0\x9f\x98", "\xef\xbf\xbd"},
        {"\xf0\x9f\x98\n", "\xef\xbf\xbd\\n"},
        {"\xe2\x82\"", "\xef\xbf\xbd\\\""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct silt_json_escape x = {0};
        start();
        silt_json_escape(&x, &out, silt_slice_of(rows[i].bytes));
        silt_json_escape_end(&x, &out);
        assert_text(silt_buf_slice(&out), rows[i].want);
    }
}

static void escape_in_pieces(silt_slice all, size_t piece)
{
    struct silt_json_escape x = {0};
    start();
    for (size_t at = 0; at < all.len; at += piece)
        silt_json_escape(&x, &out,
                         (silt_slice){all.data + at, all.len - at < piece ? all.len - at : piece});
    silt_json_escape_end(&x, &out);
}

TEST(pieces_of_any_size_give_the_same_text)
{
    static char bytes[5000];
    unsigned seed = 3;
    static const unsigned char often[] =
        "\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa4\xed\xa0\xff\"\\\n\0az";
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)often[(size_t)rand_r(&seed) % (sizeof(often) - 1)];
    silt_slice all = {bytes, sizeof(bytes)};
    escape_in_pieces(all, sizeof(bytes));
    struct silt_buf whole = out;
    out = (struct silt_buf){0};
    for (size_t piece = 1; piece < 20; piece++) {
        escape_in_pieces(all, piece);
        assert_slice(silt_buf_slice(&out), silt_buf_slice(&whole));
    }
    assert_true(silt_slice_is_utf8(silt_buf_slice(&whole)));
    silt_buf_fini(&whole);
}

TEST(nul_bytes_vanish_when_asked)
{
    struct silt_json_escape x = {.drop_nul = true};
    start();
    silt_json_escape(&x, &out, SILT_LIT("a\0b\0\0"));
    silt_json_escape(&x, &out, SILT_LIT("\xe2\0"));
    silt_json_escape_end(&x, &out);
    assert_text(silt_buf_slice(&out), "ab\xef\xbf\xbd");
}

TEST(a_buf_that_is_full_breaks_and_does_not_overflow)
{
    for (size_t max = 0; max < 40; max++) {
        silt_auto_buf b;
        silt_buf_init(&b, max);
        silt_json_open(&b, '{');
        silt_json_key(&b, SILT_LIT("key"));
        silt_json_string(&b, SILT_LIT("some\ntext\xff that"));
        silt_json_close(&b, '}');
        assert_int_equal(b.broken, max < strlen("{\"key\":\"some\\ntext\xef\xbf\xbd that\"}"));
        assert_true(b.len <= max);
    }
    silt_buf_fini(&out);
}
