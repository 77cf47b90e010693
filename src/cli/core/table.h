/* SPDX-License-Identifier: Apache-2.0 */
/* table: every command of `silt` with its options and arguments, as data. The parser, `--help`, the
 * completion of shells, usage errors and "did you mean" all come from these rows, so that a command
 * is described once. The table itself is cli/table.c. */
#pragma once

#include "base/slice.h"
#include "cli/core/options.h"

struct silt_table_option {
    const char *name;  /* without the dashes; NULL ends a list */
    char letter;       /* of the short form; 0: none */
    bool many;         /* may be repeated */
    const char *value; /* what its value is called, or the choices as a|b|c; NULL: a flag */
    const char *help;  /* with the default, where there is one; NULL: a former name, not shown */
};

enum silt_table_group {
    SILT_TABLE_RUN,
    SILT_TABLE_LIFE,
    SILT_TABLE_FILES,
    SILT_TABLE_NETWORK,
    SILT_TABLE_IMAGES,
    SILT_TABLE_MACHINE,
    SILT_TABLE_GROUP_MAX,
};

struct silt_table_row {
    const char *name; /* "exec", or "image build": a command and its verb */
    enum silt_table_group group;
    const char *words; /* its arguments, as usage shows them */
    const char *help;  /* a sentence */
    const char *example;
    const struct silt_table_option *options; /* NULL: only the common ones */
    /* What completion offers for each argument: sandbox, process, image, snapshot, place (of cp),
     * file, directory, or choices as a|b|c; the last one with a * goes for all that follow. */
    const char *arguments;
    const char *aliases;  /* other names, separated by spaces; NULL: none */
    size_t command_after; /* the arguments after this many are a command of the sandbox; 0: none */
    int (*run)(int argc, char **argv);
};

extern const struct silt_table_row silt_table[];
extern const size_t silt_table_count;
extern const struct silt_table_option silt_table_common[]; /* of every command */

/* The row that these arguments name; the number of words of its name goes to ret_words. NULL if
 * there is none. `image` alone is the first row of its verbs. */
const struct silt_table_row *silt_table_find(int argc, char *const *argv, int *ret_words);
/* Whether the row has verbs beside it: image build, image ls. */
bool silt_table_has_verbs(const struct silt_table_row *row);
/* The first word of a row's name. */
silt_slice silt_table_command(const struct silt_table_row *row);
/* An option of the row or of all commands; NULL if there is none. */
const struct silt_table_option *silt_table_option(const struct silt_table_row *row,
                                                  silt_slice name);
const struct silt_table_option *silt_table_letter(const struct silt_table_row *row, char letter);
/* Whether --help or -h is among the arguments of silt and not among those of a command. */
bool silt_table_wants_help(const struct silt_table_row *row, int argc, char *const *argv);

/* The known command or option that is spelled most like the word; "" if none is close. */
silt_slice silt_table_near_command(silt_slice word);
silt_slice silt_table_near_option(const struct silt_table_row *row, silt_slice word);
/* Advice for words of docker that silt has under another name; NULL if there is none. */
const char *silt_table_hint(const char *word);

/* The command that main runs: what silt_cli_parse and usage errors refer to. NULL in tests. */
extern const struct silt_table_row *silt_table_current;
