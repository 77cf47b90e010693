/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/options.h"
#include "base/slice.h"
#include "cli/core/table.h"

static int add(struct silt_words *w, const char *word, struct silt_error *e)
{
    if (w->count == SILT_WORDS_MAX)
        return silt_fail(e, SILT_LIMIT, "more than %d words", SILT_WORDS_MAX);
    w->items[w->count++] = word;
    return 0;
}

static const struct silt_option *find(const struct silt_options *o, silt_slice name)
{
    for (size_t i = 0; i < o->count; i++)
        if (silt_slice_eq(silt_slice_of(o->table[i].name), name))
            return &o->table[i];
    return NULL;
}

static const struct silt_option *find_letter(const struct silt_options *o, const char *word)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->table[i].letter != 0 && o->table[i].letter == word[1] && word[2] == 0)
            return &o->table[i];
    return NULL;
}

static int take_value(const struct silt_option *option, const char *value, struct silt_error *e)
{
    if (option->words != NULL)
        return add(option->words, value, e);
    *option->value = value;
    return 0;
}

/* -aq: several flags in one argument. False: something else; nothing is changed. */
static bool take_letters(const struct silt_options *o, const char *word)
{
    for (int pass = 0; pass < 2; pass++)
        for (const char *c = word + 1; *c != 0; c++) {
            const struct silt_option *option = find_letter(o, (const char[]){'-', *c, 0});
            if (word[1] == '-' || option == NULL || option->flag == NULL)
                return false;
            *option->flag = *option->flag || pass == 1;
        }
    return true;
}

static int refuse(const char *word, silt_slice key, struct silt_error *e)
{
    const struct silt_table_row *row = silt_table_current;
    silt_slice near = row != NULL ? silt_table_near_option(row, key) : SILT_LIT("");
    if (row == NULL)
        return silt_fail(e, SILT_INVALID, "unknown option %s", word);
    if (near.len > 0)
        return silt_fail(e, SILT_INVALID, "unknown option %s\nDid you mean: --%.*s", word,
                         (int)near.len, near.data);
    return silt_fail(e, SILT_INVALID, "unknown option %s\nTry: silt %s --help", word, row->name);
}

/* Reads the option at argv[*at]; advances *at if its value is the next argument. */
static int take_option(const struct silt_options *o, int argc, char **argv, int *at,
                       struct silt_error *e)
{
    const char *word = argv[*at], *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    silt_slice key = {word + 2,
                      equals != NULL ? (size_t)(equals - word) - 2 : strlen(word + 1) - 1};
    const struct silt_option *option = word[1] == '-' ? find(o, key) : find_letter(o, word);
    if (option == NULL && take_letters(o, word))
        return 0;
    if (option == NULL)
        return refuse(word, key, e);
    if (option->flag != NULL && equals != NULL)
        return silt_fail(e, SILT_INVALID, "--%s takes no value", option->name);
    if (option->flag != NULL) {
        *option->flag = true;
        return 0;
    }
    if (equals != NULL)
        return take_value(option, equals + 1, e);
    if (*at + 1 >= argc)
        return silt_fail(e, SILT_INVALID, "--%s needs a value", option->name);
    return take_value(option, argv[++*at], e);
}

int silt_options_parse(const struct silt_options *o, int argc, char **argv,
                       struct silt_words *plain, struct silt_words *rest, struct silt_error *e)
{
    int i = 0;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool dashes = argv[i][0] == '-' && argv[i][1] != 0;
        if (!dashes && plain->count == o->plain_max)
            break;
        if ((dashes ? take_option(o, argc, argv, &i, e) : add(plain, argv[i], e)) < 0)
            return -1;
    }
    if (i < argc && strcmp(argv[i], "--") == 0)
        i++;
    for (; i < argc; i++)
        if (add(rest, argv[i], e) < 0)
            return -1;
    return 0;
}
