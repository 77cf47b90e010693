/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/table.h"

enum { NEAR_MAX = 2, SPELLED_MAX = 32 };

const struct silt_table_row *silt_table_current;

silt_slice silt_table_command(const struct silt_table_row *row)
{
    return (silt_slice){row->name, strcspn(row->name, " ")};
}

static silt_slice verb(const struct silt_table_row *row)
{
    silt_slice command = silt_table_command(row);
    return silt_slice_of(row->name[command.len] == 0 ? "" : row->name + command.len + 1);
}

bool silt_table_has_verbs(const struct silt_table_row *row)
{
    return verb(row).len > 0;
}

/* Whether the word is in a list of words with spaces between them. */
static bool is_among(const char *list, silt_slice word)
{
    silt_slice rest = silt_slice_of(list != NULL ? list : ""), one;
    while (silt_slice_split(&rest, ' ', &one))
        if (one.len > 0 && silt_slice_eq(one, word))
            return true;
    return false;
}

static const struct silt_table_row *find_verb(silt_slice command, silt_slice word)
{
    for (size_t i = 0; i < silt_table_count; i++)
        if (silt_slice_eq(silt_table_command(&silt_table[i]), command)
            && silt_slice_eq(verb(&silt_table[i]), word))
            return &silt_table[i];
    return NULL;
}

const struct silt_table_row *silt_table_find(int argc, char *const *argv, int *ret_words)
{
    *ret_words = 1;
    if (argc < 1)
        return NULL;
    silt_slice word = silt_slice_of(argv[0]);
    for (size_t i = 0; i < silt_table_count; i++) {
        const struct silt_table_row *row = &silt_table[i];
        if (is_among(row->aliases, word))
            return row;
        if (!silt_slice_eq(silt_table_command(row), word))
            continue;
        const struct silt_table_row *with_verb =
            argc > 1 ? find_verb(word, silt_slice_of(argv[1])) : NULL;
        if (with_verb != NULL)
            *ret_words = 2;
        return with_verb != NULL ? with_verb : row;
    }
    return NULL;
}

static const struct silt_table_option *find_option(const struct silt_table_option *o,
                                                   silt_slice name, char letter)
{
    for (; o != NULL && o->name != NULL; o++)
        if (letter != 0 ? o->letter == letter : silt_slice_eq(silt_slice_of(o->name), name))
            return o;
    return NULL;
}

const struct silt_table_option *silt_table_option(const struct silt_table_row *row, silt_slice name)
{
    const struct silt_table_option *own = find_option(row->options, name, 0);
    return own != NULL ? own : find_option(silt_table_common, name, 0);
}

const struct silt_table_option *silt_table_letter(const struct silt_table_row *row, char letter)
{
    return letter == 0 ? NULL : find_option(row->options, SILT_LIT(""), letter);
}

/* Whether the next argument is the value of this option. */
static bool takes_next(const struct silt_table_row *row, const char *word)
{
    const struct silt_table_option *o = word[1] == '-'
                                            ? silt_table_option(row, silt_slice_of(word + 2))
                                        : word[2] == 0 ? silt_table_letter(row, word[1])
                                                       : NULL;
    return o != NULL && o->value != NULL;
}

bool silt_table_wants_help(const struct silt_table_row *row, int argc, char *const *argv)
{
    size_t plain = 0;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
        if (argv[i][0] == '-' && argv[i][1] != 0)
            i += takes_next(row, argv[i]);
        else if (row->command_after > 0 && plain++ == row->command_after)
            return false;
    }
    return false;
}

/* Did you mean */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters differ: added, missing, changed, or swapped with their neighbour. */
static size_t distance(silt_slice a, silt_slice b)
{
    size_t d[SPELLED_MAX + 1][SPELLED_MAX + 1];
    if (a.len > SPELLED_MAX || b.len > SPELLED_MAX)
        return SIZE_MAX;
    for (size_t i = 0; i <= a.len; i++)
        for (size_t j = 0; j <= b.len; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1,
                            d[i - 1][j - 1] + (a.data[i - 1] != b.data[j - 1]));
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a.len][b.len];
}

struct nearest {
    silt_slice word, best;
    size_t distance;
};

static void compare(struct nearest *n, silt_slice candidate)
{
    size_t far = distance(n->word, candidate);
    if (far > NEAR_MAX || far >= n->distance || far >= n->word.len)
        return;
    n->distance = far;
    n->best = candidate;
}

silt_slice silt_table_near_command(silt_slice word)
{
    struct nearest n = {.word = word, .best = SILT_LIT(""), .distance = SIZE_MAX};
    for (size_t i = 0; i < silt_table_count; i++) {
        const struct silt_table_row *row = &silt_table[i];
        silt_slice rest = silt_slice_of(row->aliases != NULL ? row->aliases : ""), one;
        compare(&n, silt_table_command(row));
        while (silt_slice_split(&rest, ' ', &one))
            compare(&n, one);
    }
    return n.best;
}

silt_slice silt_table_near_option(const struct silt_table_row *row, silt_slice word)
{
    struct nearest n = {.word = word, .best = SILT_LIT(""), .distance = SIZE_MAX};
    for (const struct silt_table_option *o = row->options; o != NULL && o->name != NULL; o++)
        if (o->help != NULL)
            compare(&n, silt_slice_of(o->name));
    for (const struct silt_table_option *o = silt_table_common; o->name != NULL; o++)
        compare(&n, silt_slice_of(o->name));
    return n.best;
}
