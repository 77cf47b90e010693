/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/table.h"
#include "unit/base/unit.h"

static const struct silt_table_row *find(const char *a, const char *b, int *ret_words)
{
    char *words[] = {(char *)(uintptr_t)a, (char *)(uintptr_t)b};
    return silt_table_find(b != NULL ? 2 : 1, words, ret_words);
}

static bool wants_help(const char *name, int argc, const char **args)
{
    int words;
    char *copy[8];
    for (int i = 0; i < argc; i++)
        copy[i] = (char *)(uintptr_t)args[i];
    return silt_table_wants_help(find(name, NULL, &words), argc, copy);
}

TEST(a_command_is_found_with_its_verb_or_by_another_name)
{
    int words;
    assert_string_equal(find("exec", "box", &words)->name, "exec");
    assert_int_equal(words, 1);
    assert_string_equal(find("image", "build", &words)->name, "image build");
    assert_int_equal(words, 2);
    assert_string_equal(find("rmi", "app", &words)->name, "image rm");
    assert_int_equal(words, 1);
    assert_null(find("nothing", NULL, &words));
    assert_null(find("", NULL, &words));
}

TEST(help_behind_the_sandbox_is_the_commands)
{
    assert_true(wants_help("exec", 1, (const char *[]){"--help"}));
    assert_true(wants_help("exec", 2, (const char *[]){"box", "-h"}));
    assert_true(wants_help("exec", 4, (const char *[]){"--session", "s", "box", "--help"}));
    assert_false(wants_help("exec", 3, (const char *[]){"box", "ls", "--help"}));
    assert_false(wants_help("exec", 4, (const char *[]){"box", "--", "ls", "--help"}));
    assert_true(wants_help("info", 3, (const char *[]){"a", "b", "--help"}));
}

TEST(near_words_differ_by_a_letter_or_two)
{
    assert_text(silt_table_near_command(SILT_LIT("exce")), "exec");
    assert_text(silt_table_near_command(SILT_LIT("creat")), "create");
    assert_text(silt_table_near_command(SILT_LIT("imgaes")), "images");
    assert_text(silt_table_near_command(SILT_LIT("frobnicate")), "");
    assert_text(silt_table_near_command(SILT_LIT("")), "");
    char huge[200] = {0};
    memset(huge, 'x', sizeof(huge) - 1);
    assert_text(silt_table_near_command(silt_slice_of(huge)), "");
}

TEST(every_row_is_whole)
{
    for (size_t i = 0; i < silt_table_count; i++) {
        const struct silt_table_row *row = &silt_table[i];
        assert_non_null(row->run);
        assert_non_null(strstr(row->example, "silt"));
        assert_int_equal(row->help[strlen(row->help) - 1], '.');
        for (const struct silt_table_option *o = row->options; o != NULL && o->name != NULL; o++)
            assert_true(o->value != NULL || !o->many);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(row->name, silt_table[j].name);
    }
}
