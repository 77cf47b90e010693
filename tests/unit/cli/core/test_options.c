/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/options.h"
#include "base/own.h"
#include "unit/base/unit.h"

static bool flag;
static const char *value;
static struct silt_words words, plain, rest;
static struct silt_error e;

#define PARSE(max, ...)                                                                            \
    ({                                                                                             \
        const char *args[] = {__VA_ARGS__};                                                        \
        parse(max, SILT_COUNT(args), args);                                                        \
    })

static int parse(size_t plain_max, size_t count, const char **args)
{
    static char text[16][32];
    char *copy[16];
    const struct silt_option table[] = {{.name = "flag", .letter = 'g', .flag = &flag},
                                        {.name = "value", .letter = 'v', .value = &value},
                                        {.name = "word", .words = &words}};
    struct silt_options o = {.table = table, .count = SILT_COUNT(table), .plain_max = plain_max};
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(text[i], sizeof(text[i]), "%s", args[i]);
        copy[i] = text[i];
    }
    flag = false;
    value = NULL;
    words.count = plain.count = rest.count = 0;
    return silt_options_parse(&o, (int)count, copy, &plain, &rest, &e);
}

TEST(options_and_words_may_mix)
{
    assert_int_equal(PARSE(9, "a", "--value", "1", "--flag", "b", "--word=x", "--word", "y=z"), 0);
    assert_true(flag);
    assert_string_equal(value, "1");
    assert_int_equal(plain.count, 2);
    assert_int_equal(words.count, 2);
    assert_string_equal(words.items[1], "y=z");
}

TEST(letters_of_flags_may_be_one_word)
{
    assert_int_equal(PARSE(9, "-gg"), 0);
    assert_true(flag);
    assert_int_equal(PARSE(9, "-gv", "1"), -1);
    assert_false(flag);
    assert_int_equal(PARSE(9, "-gx"), -1);
    assert_int_equal(PARSE(9, "-g-"), -1);
}

TEST(nothing_is_an_option_behind_two_dashes)
{
    assert_int_equal(PARSE(9, "a", "--", "--flag", "--", "x"), 0);
    assert_false(flag);
    assert_int_equal(plain.count, 1);
    assert_int_equal(rest.count, 3);
    assert_string_equal(rest.items[1], "--");
}

TEST(the_rest_begins_after_enough_words)
{
    assert_int_equal(PARSE(1, "id", "--value=1", "ls", "--flag"), 0);
    assert_false(flag);
    assert_int_equal(rest.count, 2);
    assert_string_equal(rest.items[0], "ls");
}

TEST(an_unknown_or_incomplete_option_is_refused)
{
    assert_int_equal(PARSE(9, "--nope"), -1);
    assert_int_equal(PARSE(9, "-f"), -1);
    assert_int_equal(PARSE(9, "--value"), -1);
    assert_int_equal(PARSE(9, "--flag=1"), -1);
    assert_int_equal(PARSE(9, "-"), 0);
}

TEST(letters_are_short_forms)
{
    assert_int_equal(PARSE(9, "a", "-g", "-v", "1"), 0);
    assert_true(flag);
    assert_string_equal(value, "1");
    assert_int_equal(plain.count, 1);
    assert_int_equal(PARSE(9, "-v"), -1);
    assert_int_equal(PARSE(9, "-gx"), -1);
}
