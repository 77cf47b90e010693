/* SPDX-License-Identifier: Apache-2.0 */
/* silt snapshot take, ls and rm, and silt rollback. */
#include "base/id.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"

enum { BODY_MAX = 4096, PATH_SIZE = 512, ID_WIDTH = 21, NAME_WIDTH = 12, TIME_WIDTH = 19 };

struct wishes {
    const char *name, *ttl;
};

static int take(const struct silt_cli *cli, const struct wishes *w, const char *id,
                struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a = {0};
    silt_auto_buf body = {0};
    const struct silt_json *answer;
    char path[PATH_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, BODY_MAX);
    silt_json_open(&body, '{');
    silt_command_add_text(&body, "name", w->name);
    silt_command_add_text(&body, "ttl", w->ttl);
    silt_json_close(&body, '}');
    if (body.broken)
        return silt_fail(e, SILT_LIMIT, "more than %d bytes of options", BODY_MAX);
    if (silt_id_check(silt_slice_of(id), e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", id, "/snapshots", e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    if (cli->json) {
        silt_cli_print_json(answer);
        return 0;
    }
    silt_cli_print(silt_cli_text(answer, "id"));
    (void)putchar('\n');
    return 0;
}

static int roll_back(const struct silt_cli *cli, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a = {0};
    silt_auto_buf body = {0};
    const struct silt_json *answer;
    char path[PATH_SIZE];
    const char *id = cli->plain.items[0];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, BODY_MAX);
    silt_json_open(&body, '{');
    silt_command_add_text(&body, "snapshot", cli->plain.items[1]);
    silt_json_close(&body, '}');
    if (body.broken)
        return silt_fail(e, SILT_INVALID, "no snapshot has such a long id");
    if (silt_id_check(silt_slice_of(id), e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", id, "/rollback", e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    if (cli->json) {
        silt_cli_print_json(answer);
        return 0;
    }
    silt_cli_print(silt_cli_text(answer, "id"));
    (void)putchar(' ');
    silt_cli_print(silt_cli_text(answer, "state"));
    (void)putchar('\n');
    return 0;
}

int silt_cli_rollback(int argc, char **argv)
{
    static struct silt_cli cli;
    static struct silt_client client;
    struct silt_error e;
    if (silt_cli_parse(&cli, NULL, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count != 2)
        return silt_cli_usage();
    int got = silt_client_init(&client, cli.server, cli.token_file, &e);
    if (got == 0)
        got = roll_back(&cli, &client, &e);
    silt_client_fini(&client);
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}

static void print_row(const struct silt_json *s, int width, int name_width)
{
    silt_slice created = silt_cli_text(s, "createdAt");
    silt_slice columns[] = {silt_cli_text(s, "id"), silt_cli_text(s, "sandboxId"),
                            silt_cli_text(s, "name")};
    const int widths[] = {ID_WIDTH, width, name_width};
    char size[SILT_CLI_SIZE_TEXT];
    for (size_t i = 0; i < SILT_COUNT(columns); i++) {
        int left = widths[i] - (int)columns[i].len;
        silt_cli_print(columns[i]);
        (void)printf("%*s", left > 0 ? left + 1 : 1, "");
    }
    (void)printf("%10s  %.*s\n", silt_cli_size(silt_cli_number(s, "bytes"), size),
                 (int)(created.len < TIME_WIDTH ? created.len : TIME_WIDTH), created.data);
}

/* `id` NULL: of all sandboxes. */
static int list(const struct silt_cli *cli, const char *id, struct silt_client *c,
                struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[PATH_SIZE] = "/v1/snapshots";
    int width = NAME_WIDTH, name_width = NAME_WIDTH;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (id != NULL
        && (silt_id_check(silt_slice_of(id), e) < 0
            || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", id, "/snapshots", e) < 0))
        return -1;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    const struct silt_json *all = silt_json_get(answer, SILT_LIT("snapshots"));
    if (all == NULL || all->type != SILT_JSON_ARRAY)
        return silt_fail(e, SILT_PROTOCOL, "answer without snapshots");
    if (cli->json) {
        silt_cli_print_json(all);
        return 0;
    }
    for (const struct silt_json *s = all->items.first; s != NULL; s = s->next) {
        width = silt_cli_widen(width, silt_cli_text(s, "sandboxId"));
        name_width = silt_cli_widen(name_width, silt_cli_text(s, "name"));
    }
    (void)printf("%-*s %-*s %-*s %10s  %s\n", ID_WIDTH, "SNAPSHOT", width, "SANDBOX", name_width,
                 "NAME", "SIZE", "CREATED (UTC)");
    for (const struct silt_json *s = all->items.first; s != NULL; s = s->next)
        print_row(s, width, name_width);
    return 0;
}

static int forget(const char *id, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[PATH_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_cli_path(path, sizeof(path), "/v1/snapshots/", id, "", e) < 0)
        return -1;
    struct silt_client_request q = {.method = "DELETE", .path = path, .file = -1};
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    if (!silt_cli_true(answer, "deleted"))
        return silt_fail(e, SILT_NOT_FOUND, "no snapshot %s", id);
    (void)puts(id);
    return 0;
}

static int forget_all(const struct silt_words *w, struct silt_client *c, struct silt_error *e)
{
    int status = 0;
    for (size_t i = 1; i < w->count; i++) {
        if (forget(w->items[i], c, e) == 0)
            continue;
        if (status < 0)
            (void)silt_cli_fail(e);
        status = -1;
    }
    return status;
}

static int dispatch(const struct silt_cli *cli, const struct wishes *x, struct silt_client *c,
                    struct silt_error *e)
{
    const struct silt_words *w = &cli->plain;
    if (w->count == 2 && strcmp(w->items[0], "take") == 0)
        return take(cli, x, w->items[1], c, e);
    if ((w->count == 1 || w->count == 2) && strcmp(w->items[0], "ls") == 0)
        return list(cli, w->count == 2 ? w->items[1] : NULL, c, e);
    if (w->count >= 2 && strcmp(w->items[0], "rm") == 0)
        return forget_all(w, c, e);
    return silt_cli_misused(e);
}

int silt_cli_snapshot(int argc, char **argv)
{
    static struct silt_cli cli;
    static struct silt_client client;
    static struct wishes w;
    struct silt_error e;
    const struct silt_option own[] = {
        {.name = "name", .value = &w.name},
        {.name = "ttl", .value = &w.ttl},
    };
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&cli, &options, argc, argv, &e) < 0
        || silt_client_init(&client, cli.server, cli.token_file, &e) < 0)
        return silt_cli_fail(&e);
    int got = dispatch(&cli, &w, &client, &e);
    silt_client_fini(&client);
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}
