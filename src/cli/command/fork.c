/* SPDX-License-Identifier: Apache-2.0 */
/* silt fork: makes sandboxes with the files of another one. */
#include "base/id.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"

enum { BODY_MAX = 64 << 10, PATH_SIZE = 512 };

static int write_body(struct silt_buf *b, const struct silt_words *plain, const char *count,
                      struct silt_error *e)
{
    uint64_t number = 0;
    silt_json_open(b, '{');
    if (count != NULL) {
        if (silt_slice_to_u64(silt_slice_of(count), 1, 100, &number, e) < 0)
            return silt_because(e, "--count");
        silt_json_key(b, SILT_LIT("count"));
        silt_json_u64(b, number);
    } else {
        silt_json_key(b, SILT_LIT("ids"));
        silt_json_open(b, '[');
        for (size_t i = 1; i < plain->count; i++)
            silt_json_string(b, silt_slice_of(plain->items[i]));
        silt_json_close(b, ']');
    }
    silt_json_close(b, '}');
    return b->broken ? silt_fail(e, SILT_LIMIT, "more than %d bytes of ids", BODY_MAX) : 0;
}

static int print_ids(const struct silt_cli *cli, const struct silt_json *answer)
{
    const struct silt_json *all = silt_json_get(answer, SILT_LIT("sandboxes"));
    if (cli->json) {
        silt_cli_print_json(answer);
        return 0;
    }
    bool is_list = all != NULL && all->type == SILT_JSON_ARRAY;
    for (const struct silt_json *s = is_list ? all->items.first : NULL; s != NULL; s = s->next) {
        silt_cli_print(silt_cli_text(s, "id"));
        (void)putchar('\n');
    }
    return 0;
}

static int fork_one(const struct silt_cli *cli, const char *count, struct silt_client *c,
                    struct silt_error *e)
{
    silt_auto_arena a = {0};
    silt_auto_buf body = {0};
    const struct silt_json *answer;
    char path[PATH_SIZE];
    const char *id = cli->plain.items[0];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, BODY_MAX);
    if (silt_id_check(silt_slice_of(id), e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", id, "/fork", e) < 0
        || write_body(&body, &cli->plain, count, e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    return silt_client_call(c, &q, &a, &answer, e) < 0 ? -1 : print_ids(cli, answer);
}

int silt_cli_fork(int argc, char **argv)
{
    static struct silt_cli cli;
    static struct silt_client client;
    struct silt_error e;
    const char *count = NULL;
    const struct silt_option own[] = {{.name = "count", .value = &count}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count < 1 || (cli.plain.count == 1) != (count != NULL))
        return silt_cli_usage();
    int got = silt_client_init(&client, cli.server, cli.token_file, &e);
    if (got == 0)
        got = fork_one(&cli, count, &client, &e);
    silt_client_fini(&client);
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}
