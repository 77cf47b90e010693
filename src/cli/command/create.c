/* SPDX-License-Identifier: Apache-2.0 */
/* silt create: creates a sandbox with a chosen image, size or network. Without those options it is
 * not needed: the first use of an id creates the sandbox. */
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"

enum { BODY_MAX = 1 << 20 };

struct wishes {
    const char *image, *from, *type, *network, *sleep_after, *stop_after, *ttl;
    bool ephemeral, keep_alive;
    struct silt_command_limits limits;
    struct silt_words allow, env, labels;
};

/* The daemon checks the values: it knows the images, types and modes, and lists them in its error.
 */
static int write_wishes(struct silt_buf *b, const char *id, const struct wishes *w,
                        struct silt_error *e)
{
    silt_json_open(b, '{');
    silt_command_add_text(b, "id", id);
    silt_command_add_text(b, "image", w->image);
    if (w->from != NULL) {
        silt_json_key(b, SILT_LIT("from"));
        silt_json_open(b, '{');
        silt_command_add_text(b, strncmp(w->from, "snap_", 5) == 0 ? "snapshot" : "sandbox",
                              w->from);
        silt_json_close(b, '}');
    }
    silt_command_add_text(b, "type", w->type);
    silt_command_add_text(b, "sleepAfter", w->sleep_after);
    silt_command_add_text(b, "stopAfter", w->stop_after);
    silt_command_add_text(b, "ttl", w->ttl);
    if (w->keep_alive) {
        silt_json_key(b, SILT_LIT("keepAlive"));
        silt_json_bool(b, true);
    }
    if (w->network != NULL || w->allow.count > 0) {
        silt_json_key(b, SILT_LIT("network"));
        silt_command_policy(b, w->network, &w->allow);
    }
    if (w->ephemeral) {
        silt_json_key(b, SILT_LIT("ephemeral"));
        silt_json_bool(b, true);
    }
    if (silt_command_add_limits(b, &w->limits, e) < 0 || silt_command_add_env(b, &w->env, e) < 0
        || silt_command_add_labels(b, &w->labels, e) < 0)
        return -1;
    silt_json_close(b, '}');
    return b->broken ? silt_fail(e, SILT_LIMIT, "more than %d bytes of options", BODY_MAX) : 0;
}

static int create(const struct silt_cli *cli, const struct wishes *w, struct silt_client *c,
                  struct silt_error *e)
{
    silt_auto_arena a = {0};
    silt_auto_buf body = {0};
    const struct silt_json *answer;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, BODY_MAX);
    if (write_wishes(&body, cli->plain.count > 0 ? cli->plain.items[0] : NULL, w, e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post("/v1/sandboxes", silt_buf_slice(&body));
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

int silt_cli_create(int argc, char **argv)
{
    static struct silt_cli cli;
    static struct silt_client client;
    static struct wishes w;
    struct silt_error e;
    const struct silt_option own[] = {
        {.name = "image", .value = &w.image},
        {.name = "from", .value = &w.from},
        {.name = "type", .value = &w.type},
        {.name = "cpu", .value = &w.limits.cpu},
        {.name = "memory", .value = &w.limits.memory},
        {.name = "disk", .value = &w.limits.disk},
        {.name = "pids", .value = &w.limits.pids},
        {.name = "network", .value = &w.network},
        {.name = "allow", .words = &w.allow},
        {.name = "sleep-after", .value = &w.sleep_after},
        {.name = "stop-after", .value = &w.stop_after},
        {.name = "ttl", .value = &w.ttl},
        {.name = "keep-alive", .flag = &w.keep_alive},
        {.name = "ephemeral", .flag = &w.ephemeral},
        {.name = "env", .letter = 'e', .words = &w.env},
        {.name = "label", .words = &w.labels},
    };
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count > 1)
        return silt_cli_usage();
    int got = silt_client_init(&client, cli.server, cli.token_file, &e);
    if (got == 0)
        got = create(&cli, &w, &client, &e);
    silt_client_fini(&client);
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}
