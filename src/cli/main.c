/* SPDX-License-Identifier: Apache-2.0 */
/* silt: the command line. An HTTP client of the daemon and nothing more, except `image build`,
 * which runs a recipe as root first, and `tls dev`, which makes files of this machine. The commands
 * are the rows of table.c. */
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/help.h"

enum { WORDS_MAX = 4096, NAME_SIZE = 64 };

/* `silt --server HOST:PORT ls` is `silt ls --server HOST:PORT`. */
static void bring_command_first(int argc, char **argv)
{
    int at = 1;
    while (at < argc && strncmp(argv[at], "--", 2) == 0) {
        const char *equals = strchr(argv[at], '=');
        size_t len = equals != NULL ? (size_t)(equals - argv[at]) : strlen(argv[at]);
        const struct silt_table_option *o = silt_table_common;
        while (o->name != NULL
               && (o->value == NULL
                   || !silt_slice_eq(silt_slice_of(o->name), (silt_slice){argv[at] + 2, len - 2})))
            o++;
        if (o->name == NULL)
            return;
        at += equals != NULL ? 1 : 2;
    }
    if (at >= argc)
        return;
    char *command = argv[at];
    memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
    argv[1] = command;
}

/* Runs a row with these arguments; a verb of its name goes before them. */
static int run(const struct silt_table_row *row, int argc, char **argv)
{
    static char *words[WORDS_MAX];
    static char name[NAME_SIZE];
    int count = 0;
    struct silt_error e;
    (void)snprintf(name, sizeof(name), "%s", row->name);
    char *verb = strchr(name, ' ');
    if (argc > WORDS_MAX - 2) {
        (void)silt_fail(&e, SILT_LIMIT, "more than %d arguments", WORDS_MAX - 2);
        return silt_cli_fail(&e);
    }
    if (verb != NULL)
        words[count++] = verb + 1;
    for (int i = 0; i < argc; i++)
        words[count++] = argv[i];
    silt_table_current = row;
    return row->run(count, words);
}

static int refuse_verb(const struct silt_table_row *row)
{
    struct silt_error e;
    silt_auto_buf text;
    silt_slice command = silt_table_command(row);
    silt_buf_init(&text, sizeof(e.text) / 2);
    for (size_t i = 0; i < silt_table_count; i++)
        if (silt_slice_eq(silt_table_command(&silt_table[i]), command))
            silt_buf_addf(&text, " %s%s", text.len > 0 ? "| " : "",
                          silt_table[i].name + command.len + 1);
    (void)silt_fail(&e, SILT_INVALID, "usage: silt %.*s%.*s\nTry: silt help %.*s", (int)command.len,
                    command.data, (int)text.len, text.data, (int)command.len, command.data);
    return silt_cli_fail(&e);
}

int main(int argc, char **argv)
{
    int words;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return silt_cli_help(0, argv);
    if (strcmp(argv[1], "--version") == 0)
        return silt_cli_version(0, argv);
    if (strcmp(argv[1], "__complete") == 0)
        return silt_cli_complete(argc - 2, argv + 2);
    bring_command_first(argc, argv);
    const struct silt_table_row *row = silt_table_find(argc - 1, argv + 1, &words);
    if (row == NULL)
        return silt_cli_no_command(argv[1]);
    bool verbs = silt_table_has_verbs(row) && words == 1
                 && silt_slice_eq(silt_slice_of(argv[1]), silt_table_command(row));
    if (silt_table_wants_help(row, argc - 1 - words, argv + 1 + words)) {
        silt_help_row(row, verbs);
        return EXIT_SUCCESS;
    }
    if (verbs)
        return refuse_verb(row);
    return run(row, argc - 1 - words, argv + 1 + words);
}
