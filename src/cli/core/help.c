/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/help.h"

#include <stdio.h>

enum { USAGE_MAX = 4096, NAME_WIDTH = 13, OPTION_WIDTH = 24, OPTION_TEXT = 128 };

static const char *const groups[SILT_TABLE_GROUP_MAX] = {
    [SILT_TABLE_RUN] = "Run things", [SILT_TABLE_LIFE] = "Sandboxes",
    [SILT_TABLE_FILES] = "Files",    [SILT_TABLE_NETWORK] = "Network and ports",
    [SILT_TABLE_IMAGES] = "Images",  [SILT_TABLE_MACHINE] = "This machine",
};

void silt_help_usage(const struct silt_table_row *row, const char *next, struct silt_buf *out)
{
    int depth = 0;
    silt_buf_addf(out, "silt %s%s", row->name, row->words[0] != 0 ? " " : "");
    for (const char *p = row->words; *p != 0; p++) {
        depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
        if (depth == 0 && strncmp(p, " | ", 3) == 0) {
            silt_buf_addf(out, "%ssilt %s ", next, row->name);
            p += 2;
        } else {
            silt_buf_add_byte(out, *p);
        }
    }
}

/* Choices stand in the help, not in the column. */
static void print_option(const struct silt_table_option *o)
{
    char text[OPTION_TEXT], letter[8] = "    ";
    bool choice = o->value != NULL && strchr(o->value, '|') != NULL;
    if (o->help == NULL)
        return;
    if (o->letter != 0)
        (void)snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    (void)snprintf(text, sizeof(text), "--%s%s%s", o->name, o->value != NULL ? " " : "",
                   o->value == NULL ? ""
                   : choice         ? "WORD"
                                    : o->value);
    (void)printf("  %s%-*s %s", letter, OPTION_WIDTH, text, o->help);
    if (choice)
        (void)printf("; one of %s", o->value);
    (void)puts(o->many ? "; may be repeated" : "");
}

static void print_options(const struct silt_table_option *o, const char *title)
{
    if (o == NULL)
        return;
    (void)printf("\n%s:\n", title);
    for (; o->name != NULL; o++)
        print_option(o);
}

static void print_one(const struct silt_table_row *row)
{
    silt_auto_buf usage;
    silt_buf_init(&usage, USAGE_MAX);
    silt_help_usage(row, "\n", &usage);
    (void)printf("%.*s\n\n%s\n", (int)usage.len, usage.data, row->help);
    if (row->aliases != NULL)
        (void)printf("Also known as: %s\n", row->aliases);
    print_options(row->options, "Options");
    print_options(silt_table_common, "Options of every command");
    (void)printf("\nExample:\n  %s\n", row->example);
}

void silt_help_row(const struct silt_table_row *row, bool verbs)
{
    bool first = true;
    if (!verbs) {
        print_one(row);
        return;
    }
    for (size_t i = 0; i < silt_table_count; i++) {
        const struct silt_table_row *other = &silt_table[i];
        if (!silt_slice_eq(silt_table_command(other), silt_table_command(row)))
            continue;
        if (!first)
            (void)puts("");
        first = false;
        silt_auto_buf usage;
        silt_buf_init(&usage, USAGE_MAX);
        silt_help_usage(other, "\n", &usage);
        (void)printf("%.*s\n    %s\n", (int)usage.len, usage.data, other->help);
    }
    silt_slice command = silt_table_command(row);
    (void)printf("\nOptions and an example: silt help %.*s VERB\n", (int)command.len, command.data);
}

void silt_help_all(void)
{
    (void)puts("silt: isolated Linux computers by id");
    for (int group = 0; group < SILT_TABLE_GROUP_MAX; group++) {
        (void)printf("\n%s\n", groups[group]);
        for (size_t i = 0; i < silt_table_count; i++)
            if ((int)silt_table[i].group == group)
                (void)printf("  %-*s %s\n", NAME_WIDTH, silt_table[i].name, silt_table[i].help);
    }
    (void)puts("\nOptions of a command with defaults and an example: silt help COMMAND\n"
               "Exit status 125: silt itself failed, not the command. More: man silt");
}
