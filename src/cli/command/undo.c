/* SPDX-License-Identifier: Apache-2.0 */
/* silt history and silt undo. */
#include "base/id.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 512, BODY_MAX = 256, STEPS_MAX = 200, TIME_WIDTH = 19, EXIT_WIDTH = 4 };

static void print_exit(const struct silt_json *h)
{
    const struct silt_json *code = silt_json_get(h, SILT_LIT("exitCode"));
    if (code != NULL && code->type == SILT_JSON_INT)
        (void)printf("%*lld", EXIT_WIDTH, (long long)code->integer);
    else
        (void)printf("%*s", EXIT_WIDTH, "-");
}

/* Each command takes one line. */
static void print_command(silt_slice command)
{
    const char *end = command.len > 0 ? memchr(command.data, '\n', command.len) : NULL;
    silt_slice first = {command.data, end != NULL ? (size_t)(end - command.data) : command.len};
    silt_cli_print(first);
    (void)puts(end != NULL ? " ..." : "");
}

/* What undo takes as N comes first. */
static void print_row(const struct silt_json *h, size_t steps)
{
    silt_slice at = silt_cli_text(h, "at"), snapshot = silt_cli_text(h, "snapshotId");
    (void)printf("%4zu  %.*s  ", steps, (int)(at.len < TIME_WIDTH ? at.len : TIME_WIDTH), at.data);
    print_exit(h);
    (void)printf("  %-21.*s  ", (int)snapshot.len, snapshot.len > 0 ? snapshot.data : "");
    print_command(silt_cli_text(h, "command"));
}

static int print_list(const struct silt_json *answer, const char *key, struct silt_error *e)
{
    const struct silt_json *all = silt_json_get(answer, silt_slice_of(key));
    if (all == NULL || all->type != SILT_JSON_ARRAY)
        return silt_fail(e, SILT_PROTOCOL, "answer without %s", key);
    size_t left = all->items.count;
    (void)printf("%4s  %-19s  %*s  %-21s  %s\n", "N", "TIME (UTC)", EXIT_WIDTH, "EXIT", "SNAPSHOT",
                 "COMMAND");
    for (const struct silt_json *h = all->items.first; h != NULL; h = h->next)
        print_row(h, left--);
    return 0;
}

static int path_of(const struct silt_cli *cli, const char *rest, char path[PATH_SIZE],
                   struct silt_error *e)
{
    const char *id = cli->plain.items[0];
    return silt_id_check(silt_slice_of(id), e) < 0
                   || silt_cli_path(path, PATH_SIZE, "/v1/sandboxes/", id, rest, e) < 0
               ? -1
               : 0;
}

static int history(const struct silt_cli *cli, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a = {0};
    const struct silt_json *answer;
    char path[PATH_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (path_of(cli, "/history", path, e) < 0)
        return -1;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    if (!cli->json)
        return print_list(answer, "history", e);
    silt_cli_print_json(silt_json_get(answer, SILT_LIT("history")));
    return 0;
}

static void print_ended(const struct silt_json *answer)
{
    static const char *const counts[] = {"sessions", "terminals", "contexts"};
    const struct silt_json *ended = silt_json_get(answer, SILT_LIT("ended"));
    const struct silt_json *processes = silt_json_get(ended, SILT_LIT("processes"));
    (void)printf("ended:");
    for (size_t i = 0; i < SILT_COUNT(counts); i++)
        (void)printf(" %lld %s,", (long long)silt_cli_number(ended, counts[i]), counts[i]);
    (void)printf(" %zu processes\n", processes != NULL ? processes->items.count : 0);
    for (const struct silt_json *p = processes != NULL ? processes->items.first : NULL; p != NULL;
         p = p->next) {
        (void)printf("  ");
        silt_cli_print(p->string);
        (void)putchar('\n');
    }
}

static int undo(const struct silt_cli *cli, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a = {0};
    silt_auto_buf body = {0};
    const struct silt_json *answer;
    char path[PATH_SIZE];
    uint64_t steps = 1;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, BODY_MAX);
    if (cli->plain.count == 2
        && silt_slice_to_u64(silt_slice_of(cli->plain.items[1]), 1, STEPS_MAX, &steps, e) < 0)
        return silt_because(e, "the number of commands to undo");
    if (path_of(cli, "/undo", path, e) < 0)
        return -1;
    silt_json_open(&body, '{');
    silt_json_add_u64(&body, "steps", steps);
    silt_json_close(&body, '}');
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    if (cli->json) {
        silt_cli_print_json(answer);
        return 0;
    }
    if (print_list(answer, "undone", e) < 0)
        return -1;
    print_ended(answer);
    return 0;
}

static int run(int argc, char **argv, size_t most,
               int (*what)(const struct silt_cli *cli, struct silt_client *c, struct silt_error *e))
{
    static struct silt_cli cli;
    static struct silt_client client;
    struct silt_error e;
    if (silt_cli_parse(&cli, NULL, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count == 0 || cli.plain.count > most)
        return silt_cli_usage();
    int got = silt_client_init(&client, cli.server, cli.token_file, &e);
    if (got == 0)
        got = what(&cli, &client, &e);
    silt_client_fini(&client);
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}

int silt_cli_history(int argc, char **argv)
{
    return run(argc, argv, 1, history);
}

int silt_cli_undo(int argc, char **argv)
{
    return run(argc, argv, 2, undo);
}
