/* SPDX-License-Identifier: Apache-2.0 */
/* silt completion, and `silt __complete WORD...`, which its scripts call for each Tab: prints what
 * may stand for the last word, one per line with a tab and its help, from the table of commands and
 * from the daemon. A last line names what the shell itself adds: `:file`, `:directory`, `:place`.
 * Never an error: a Tab that finds nothing shows nothing. */
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/context.h"
#include "cli/core/table.h"

enum { PATH_SIZE = 1024, TIMEOUT_MS = 2000, LIST_MAX = 200 };

struct asking {
    const struct silt_table_row *row;
    const char *word;    /* to complete */
    const char *sandbox; /* the first argument, or NULL */
    const char *server, *token_file;
};

static void offer(const struct asking *x, silt_slice word, const char *after, const char *help)
{
    silt_slice typed = silt_slice_of(x->word);
    if (!silt_slice_starts(word, typed))
        return;
    silt_cli_print(word);
    (void)printf("%s\t%s\n", after, help);
}

static void offer_choices(const struct asking *x, const char *choices)
{
    silt_slice rest = silt_slice_of(choices), one;
    while (silt_slice_split(&rest, '|', &one))
        offer(x, one, "", "");
}

/* What the daemon has: the members `key` of the list `list` in its answer. */
static void offer_from_daemon(const struct asking *x, const char *path, const char *list,
                              const char *key, const char *after)
{
    static struct silt_client c;
    struct silt_error e;
    silt_auto_arena a;
    const struct silt_json *answer;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_client_init(&c, x->server, x->token_file, &e) == 0) {
        c.timeout_ms = TIMEOUT_MS;
        if (silt_client_call(&c, &q, &a, &answer, &e) == 0) {
            const struct silt_json *items = silt_json_get(answer, silt_slice_of(list));
            bool is_list = items != NULL && items->type == SILT_JSON_ARRAY;
            for (const struct silt_json *i = is_list ? items->items.first : NULL; i != NULL;
                 i = i->next)
                offer(x, silt_cli_text(i, key), after, "");
        }
    }
    silt_client_fini(&c);
}

static void offer_processes(const struct asking *x)
{
    char path[PATH_SIZE];
    struct silt_error e;
    if (x->sandbox != NULL
        && silt_cli_path(path, sizeof(path), "/v1/sandboxes/", x->sandbox, "/processes", &e) == 0)
        offer_from_daemon(x, path, "processes", "id", "");
}

static void offer_commands(const struct asking *x)
{
    for (size_t i = 0; i < silt_table_count; i++) {
        const struct silt_table_row *row = &silt_table[i];
        bool again =
            i > 0 && silt_slice_eq(silt_table_command(row), silt_table_command(&silt_table[i - 1]));
        if (!again)
            offer(x, silt_table_command(row), "", silt_table_has_verbs(row) ? "" : row->help);
    }
}

static void offer_verbs(const struct asking *x)
{
    silt_slice command = silt_table_command(x->row);
    for (size_t i = 0; i < silt_table_count; i++)
        if (silt_slice_eq(silt_table_command(&silt_table[i]), command))
            offer(x, silt_slice_of(silt_table[i].name + command.len + 1), "", silt_table[i].help);
}

static void offer_option(const struct asking *x, const struct silt_table_option *o)
{
    char text[64] = {'-', o->letter, 0};
    if (o->help == NULL)
        return;
    if (o->letter != 0)
        offer(x, silt_slice_of(text), "", o->help);
    (void)snprintf(text, sizeof(text), "--%s", o->name);
    offer(x, silt_slice_of(text), "", o->help);
}

static void offer_options(const struct asking *x)
{
    for (const struct silt_table_option *o = x->row->options; o != NULL && o->name != NULL; o++)
        offer_option(x, o);
    for (const struct silt_table_option *o = silt_table_common; o->name != NULL; o++)
        offer_option(x, o);
    if (x->row->command_after > 0)
        offer(x, SILT_LIT("--"), "", "the command follows");
}

static void offer_contexts(const struct asking *x)
{
    static struct silt_contexts all;
    struct silt_error e;
    for (size_t i = 0; silt_contexts_load(&all, &e) == 0 && i < all.count; i++)
        offer(x, silt_slice_of(all.items[i].name), "", all.items[i].url);
}

static void offer_kind(const struct asking *x, silt_slice kind)
{
    char choices[256];
    struct silt_error e;
    if (silt_slice_eq(kind, SILT_LIT("sandbox")) || silt_slice_eq(kind, SILT_LIT("ID"))) {
        offer_from_daemon(x, "/v1/sandboxes?limit=200", "sandboxes", "id", "");
    } else if (silt_slice_eq(kind, SILT_LIT("process"))) {
        offer_processes(x);
    } else if (silt_slice_eq(kind, SILT_LIT("image")) || silt_slice_eq(kind, SILT_LIT("IMAGE"))) {
        offer_from_daemon(x, "/v1/images", "images", "name", "");
    } else if (silt_slice_eq(kind, SILT_LIT("snapshot"))) {
        offer_from_daemon(x, "/v1/snapshots", "snapshots", "id", "");
    } else if (silt_slice_eq(kind, SILT_LIT("place"))) {
        offer_from_daemon(x, "/v1/sandboxes?limit=200", "sandboxes", "id", ":");
        (void)puts(":place");
    } else if (silt_slice_eq(kind, SILT_LIT("context"))
               || silt_slice_eq(kind, SILT_LIT("CONTEXT"))) {
        offer_contexts(x);
    } else if (silt_slice_eq(kind, SILT_LIT("command"))) {
        offer_commands(x);
    } else if (silt_slice_eq(kind, SILT_LIT("file")) || silt_slice_eq(kind, SILT_LIT("FILE"))) {
        (void)puts(":file");
    } else if (silt_slice_eq(kind, SILT_LIT("directory")) || silt_slice_eq(kind, SILT_LIT("DIR"))) {
        (void)puts(":directory");
    } else if (silt_slice_has_byte(kind, '|')
               && silt_slice_to_cstr(kind, choices, sizeof(choices), &e) == 0) {
        offer_choices(x, choices);
    }
}

static void offer_argument(const struct asking *x, size_t at)
{
    silt_slice rest = silt_slice_of(x->row->arguments != NULL ? x->row->arguments : ""), kind;
    for (size_t i = 0; silt_slice_split(&rest, ' ', &kind); i++) {
        bool star = kind.len > 0 && kind.data[kind.len - 1] == '*';
        if (star)
            kind.len--;
        if (i == at || star) {
            offer_kind(x, kind);
            return;
        }
    }
}

/* The option that this word is, if the next word is its value. */
static const struct silt_table_option *expects(const struct silt_table_row *row, const char *word)
{
    const struct silt_table_option *o = NULL;
    if (strncmp(word, "--", 2) == 0)
        o = silt_table_option(row, silt_slice_of(word + 2));
    else if (word[0] == '-' && word[1] != 0 && word[2] == 0)
        o = silt_table_letter(row, word[1]);
    return o != NULL && o->value != NULL ? o : NULL;
}

/* The words after the command's name; the last one is to be completed. */
static void complete(struct asking *x, int argc, char **argv)
{
    size_t plain = 0;
    for (int i = 0; i + 1 < argc; i++) {
        const struct silt_table_option *o = expects(x->row, argv[i]);
        if (strcmp(argv[i], "--") == 0
            || (x->row->command_after > 0 && plain > x->row->command_after))
            return; /* a command of the sandbox */
        if (o != NULL && i + 2 == argc) {
            offer_kind(x, silt_slice_of(o->value));
            return;
        }
        if (o != NULL) {
            i++;
            if (strcmp(o->name, "server") == 0)
                x->server = argv[i];
            if (strcmp(o->name, "context") == 0)
                silt_context_choose(argv[i]);
            if (strcmp(o->name, "token-file") == 0)
                x->token_file = argv[i];
        } else if (argv[i][0] != '-' || argv[i][1] == 0) {
            x->sandbox = plain++ == 0 ? argv[i] : x->sandbox;
        }
    }
    if (x->word[0] == '-')
        offer_options(x);
    else
        offer_argument(x, plain);
}

int silt_cli_complete(int argc, char **argv)
{
    int words;
    struct asking x = {.word = argc > 0 ? argv[argc - 1] : ""};
    if (argc <= 1) {
        offer_commands(&x);
        return EXIT_SUCCESS;
    }
    x.row = silt_table_find(argc - 1, argv, &words);
    if (x.row == NULL)
        return EXIT_SUCCESS;
    bool bare = words == 1 && silt_table_has_verbs(x.row)
                && silt_slice_eq(silt_slice_of(argv[0]), silt_table_command(x.row));
    if (bare && argc == 2)
        offer_verbs(&x);
    else if (!bare)
        complete(&x, argc - words, argv + words);
    return EXIT_SUCCESS;
}

/* docs/completion, which packages install as files. */
extern const unsigned char silt_completion_bash[], silt_completion_zsh[], silt_completion_fish[];
extern const size_t silt_completion_bash_size, silt_completion_zsh_size, silt_completion_fish_size;

int silt_cli_completion(int argc, char **argv)
{
    static struct silt_cli cli;
    struct silt_error e;
    if (silt_cli_parse(&cli, NULL, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    const struct {
        const char *name;
        const unsigned char *text;
        size_t size;
    } shells[] = {{"bash", silt_completion_bash, silt_completion_bash_size},
                  {"zsh", silt_completion_zsh, silt_completion_zsh_size},
                  {"fish", silt_completion_fish, silt_completion_fish_size}};
    for (size_t i = 0; cli.plain.count == 1 && i < SILT_COUNT(shells); i++)
        if (strcmp(cli.plain.items[0], shells[i].name) == 0) {
            (void)fwrite(shells[i].text, 1, shells[i].size, stdout);
            return EXIT_SUCCESS;
        }
    return silt_cli_usage();
}
