/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "json/json.h"
#include "unit/base/unit.h"

#include <locale.h>
#include <math.h>

static struct silt_arena arena;
static struct silt_error e;

static bool takes(silt_slice text, const struct silt_json **ret)
{
    silt_arena_fini(&arena);
    silt_arena_init(&arena, 64 << 20);
    return silt_json_read(&arena, text, ret, &e) == 0;
}

static const struct silt_json *read_text(silt_slice text)
{
    const struct silt_json *v;
    if (!takes(text, &v)) {
        print_error("%s\n", e.text);
        abort();
    }
    return v;
}
#define READ(text) read_text(SILT_LIT(text))

static bool refuses(silt_slice text)
{
    const struct silt_json *v;
    return !takes(text, &v);
}
#define REFUSES(text) refuses(SILT_LIT(text))

TEST(values_have_their_types)
{
    assert_int_equal(READ("null")->type, SILT_JSON_NULL);
    assert_true(READ("true")->boolean);
    assert_int_equal(READ("false")->type, SILT_JSON_BOOL);
    assert_false(READ("false")->boolean);
    assert_int_equal(READ("[1,2]")->items.count, 2);
    assert_int_equal(READ("{}")->type, SILT_JSON_OBJECT);
    assert_text(READ("\"x\"")->string, "x");
}

TEST(members_are_found_by_key_and_items_in_order)
{
    const struct silt_json *v = READ("{\"a\":1,\"b\":[true,\"x\"],\"\":null}");
    assert_int_equal(silt_json_get(v, SILT_LIT("a"))->integer, 1);
    const struct silt_json *b = silt_json_get(v, SILT_LIT("b"));
    assert_true(b->items.first->boolean);
    assert_text(b->items.first->next->string, "x");
    assert_null(b->items.first->next->next);
    assert_int_equal(silt_json_get(v, SILT_LIT(""))->type, SILT_JSON_NULL);
    assert_null(silt_json_get(v, SILT_LIT("c")));
    assert_null(silt_json_get(b, SILT_LIT("a")));
    assert_null(silt_json_get(NULL, SILT_LIT("a")));
}

TEST(whole_numbers_are_exact_while_they_fit)
{
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {{"0", 0},
                {"-0", 0},
                {"9007199254740993", 9007199254740993},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN},
                {"1000000000000000000", 1000000000000000000}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct silt_json *v = read_text(silt_slice_of(rows[i].text));
        assert_int_equal(v->type, SILT_JSON_INT);
        assert_true(v->integer == rows[i].value);
    }
}

TEST(other_numbers_are_the_nearest_double)
{
    static const char *const texts[] = {"9223372036854775808",
                                        "-9223372036854775809",
                                        "1.5",
                                        "-0.0",
                                        "0.1",
                                        "1e23",
                                        "5e-324",
                                        "2.2250738585072011e-308",
                                        "1.7976931348623157e308",
                                        "9007199254740993.0",
                                        "123456789012345678901234567890",
                                        "0.000001234567890123456789",
                                        "1e-400",
                                        "7.2057594037927933e+16",
                                        "3.0e-21"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct silt_json *v = read_text(silt_slice_of(texts[i]));
        assert_int_equal(v->type, SILT_JSON_DOUBLE);
        double want = strtod(texts[i], NULL);
        assert_memory_equal(&v->number, &want, sizeof(want));
    }
    assert_true(signbit(READ("-0.0")->number));
    assert_true(REFUSES("1e309"));
    assert_non_null(strstr(e.text, "too large"));
}

TEST(numbers_do_not_depend_on_the_locale)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"};
    const char *set = NULL;
    for (size_t i = 0; i < 3 && set == NULL; i++)
        set = setlocale(LC_ALL, names[i]);
    assert_true(READ("1.7976931348623157e308")->number > 1.7e308);
    assert_true(READ("123456789.123456789123456789")->number > 123456789.1);
    (void)setlocale(LC_ALL, "C");
    if (set == NULL)
        skip();
}

TEST(strings_without_escapes_are_slices_of_the_text)
{
    silt_slice text = SILT_LIT("[\"plain\",\"gr\xc3\xbc\xc3\x9f\x65\"]");
    const struct silt_json *v = read_text(text);
    assert_ptr_equal(v->items.first->string.data, text.data + 2);
    assert_text(v->items.first->next->string, "grüße");
}

TEST(escapes_become_bytes)
{
    assert_slice(READ("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"")->string, SILT_LIT("\"\\/\b\f\n\r\t"));
    assert_slice(READ("\"a\\u0000b\"")->string, SILT_LIT("a\0b"));
    assert_text(READ("\"\\u00e4\\u20AC\\ud83d\\ude00!\"")->string, "ä€😀!");
    assert_text(READ("\"\\uffff\\u07ff\\u0080\"")->string, "\xef\xbf\xbf\xdf\xbf\xc2\x80");
    assert_text(READ("\"long before the escape ... \\n and ä long after it\"")->string,
                "long before the escape ... \n and ä long after it");
}

TEST(a_refusal_names_the_byte)
{
    assert_true(REFUSES("{\"a\": tru}"));
    assert_int_equal(e.code, SILT_INVALID);
    assert_string_equal(e.text, "JSON: expected a value at byte 6");
    assert_true(REFUSES("[1,2"));
    assert_string_equal(e.text, "JSON: unexpected end at byte 4");
    assert_true(REFUSES("{} x"));
    assert_string_equal(e.text, "JSON: more after the document at byte 3");
    assert_true(REFUSES("{\"k\\n\":1,\"k\\n\":2}"));
    assert_string_equal(e.text, "JSON: duplicate key \"k\\x0a\" before byte 17");
}

TEST(the_depth_has_a_limit)
{
    char text[200];
    for (size_t depth = 60; depth < 70; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        assert_int_equal(refuses((silt_slice){text, 2 * depth}), depth > SILT_JSON_DEPTH_MAX);
    }
}

TEST(memory_has_a_ceiling)
{
    static char text[200001];
    const struct silt_json *v;
    text[0] = '[';
    for (size_t i = 1; i < 200000; i += 2)
        memcpy(text + i, "1,", 2);
    text[199999] = '1';
    text[200000] = ']';
    silt_arena_fini(&arena);
    silt_arena_init(&arena, 1 << 20);
    assert_int_equal(silt_json_read(&arena, (silt_slice){text, sizeof(text)}, &v, &e), -1);
    assert_int_equal(e.code, SILT_LIMIT);
}

/* {"k0":0,"k1":0,…} with a key that comes twice, or not. */
static size_t make_object(char *text, size_t size, size_t keys, bool twice)
{
    size_t n = 1;
    text[0] = '{';
    for (size_t i = 0; i < keys; i++)
        n += (size_t)snprintf(text + n, size - n, "%s\"k%zu\":0", i > 0 ? "," : "", i);
    if (twice)
        n += (size_t)snprintf(text + n, size - n, ",\"k%zu\":0", keys / 2);
    n += (size_t)snprintf(text + n, size - n, "}");
    return n;
}

TEST(duplicate_keys_are_found_in_objects_of_any_size)
{
    static char text[4 << 20];
    for (size_t keys = 1; keys < 200000; keys = keys < 40 ? keys + 1 : keys * 3) {
        assert_non_null(
            read_text((silt_slice){text, make_object(text, sizeof(text), keys, false)}));
        assert_true(refuses((silt_slice){text, make_object(text, sizeof(text), keys, true)}));
    }
}

TEST(an_object_with_many_keys_is_read_in_linear_time)
{
    static char text[8 << 20];
    size_t n = make_object(text, sizeof(text), 300000, false);
    int64_t before = silt_clock_ms();
    assert_false(refuses((silt_slice){text, n}));
    assert_true(silt_clock_ms() - before < 5000); /* quadratic would be minutes, also when slow */
}

TEST(every_prefix_of_a_document_is_refused)
{
    static const char text[] =
        "{\"a\":[1,-2.5e3,true,false,null],\"b\\u00e4\\ud83d\\ude00\":{\"c\":\"\xe2\x82\xac\"}}";
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        char *copy = malloc(n + (n == 0));
        memcpy(copy, text, n);
        assert_true(refuses((silt_slice){copy, n}));
        free(copy);
    }
    assert_false(refuses((silt_slice){text, sizeof(text) - 1}));
}

TEST(no_memory_is_left)
{
    silt_arena_fini(&arena);
}
