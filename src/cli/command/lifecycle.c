/* SPDX-License-Identifier: Apache-2.0 */
/* silt stop, start, restart, pause, resume and update: change the state or the settings of
 * sandboxes. */
#include "base/id.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"

enum { BODY_MAX = 1 << 20, PATH_SIZE = 512 };

static int print_state(const struct silt_cli *cli, const struct silt_json *answer)
{
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

static int change_one(struct silt_client *c, const struct silt_cli *cli, const char *id,
                      const char *change, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[PATH_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_id_check(silt_slice_of(id), e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", id, change, e) < 0)
        return -1;
    struct silt_client_request q = {.method = "POST", .path = path, .file = -1};
    return silt_client_call(c, &q, &a, &answer, e) < 0 ? -1 : print_state(cli, answer);
}

static int change_all(int argc, char **argv, const char *change)
{
    static struct silt_cli cli;
    static struct silt_client client;
    struct silt_error e;
    int status = EXIT_SUCCESS;
    if (silt_cli_parse(&cli, NULL, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count == 0)
        return silt_cli_usage();
    if (silt_client_init(&client, cli.server, cli.token_file, &e) < 0)
        return silt_cli_fail(&e);
    for (size_t i = 0; i < cli.plain.count; i++)
        if (change_one(&client, &cli, cli.plain.items[i], change, &e) < 0)
            status = silt_cli_fail(&e);
    silt_client_fini(&client);
    return status;
}

int silt_cli_stop(int argc, char **argv)
{
    return change_all(argc, argv, "/stop");
}

int silt_cli_start(int argc, char **argv)
{
    return change_all(argc, argv, "/start");
}

int silt_cli_restart(int argc, char **argv)
{
    return change_all(argc, argv, "/restart");
}

int silt_cli_pause(int argc, char **argv)
{
    return change_all(argc, argv, "/pause");
}

int silt_cli_resume(int argc, char **argv)
{
    return change_all(argc, argv, "/resume");
}

/* update */

struct wishes {
    const char *sleep_after, *stop_after, *ttl, *keep_alive, *keep_processes, *remove_after_stop;
    const char *network, *auto_snapshot;
    struct silt_command_limits limits;
    struct silt_words allow, env, labels;
};

static int add_switch(struct silt_buf *b, const char *key, const char *option, const char *value,
                      struct silt_error *e)
{
    if (value == NULL)
        return 0;
    bool on = strcmp(value, "on") == 0;
    if (!on && strcmp(value, "off") != 0)
        return silt_fail(e, SILT_INVALID, "--%s is on or off, not %s", option, value);
    silt_json_key(b, silt_slice_of(key));
    silt_json_bool(b, on);
    return 0;
}

static int write_wishes(struct silt_buf *b, const struct wishes *w, struct silt_error *e)
{
    silt_json_open(b, '{');
    silt_command_add_text(b, "sleepAfter", w->sleep_after);
    silt_command_add_text(b, "stopAfter", w->stop_after);
    silt_command_add_text(b, "autoSnapshot", w->auto_snapshot);
    if (w->ttl != NULL && strcmp(w->ttl, "off") == 0) {
        silt_json_key(b, SILT_LIT("ttl"));
        silt_json_null(b);
    } else {
        silt_command_add_text(b, "ttl", w->ttl);
    }
    if (w->network != NULL || w->allow.count > 0) {
        silt_json_key(b, SILT_LIT("network"));
        silt_command_policy(b, w->network, &w->allow);
    }
    if (add_switch(b, "keepAlive", "keep-alive", w->keep_alive, e) < 0
        || add_switch(b, "keepProcesses", "keep-processes", w->keep_processes, e) < 0
        || add_switch(b, "removeAfterStop", "remove-after-stop", w->remove_after_stop, e) < 0
        || silt_command_add_limits(b, &w->limits, e) < 0 || silt_command_add_env(b, &w->env, e) < 0
        || silt_command_add_labels(b, &w->labels, e) < 0)
        return -1;
    silt_json_close(b, '}');
    return b->broken ? silt_fail(e, SILT_LIMIT, "more than %d bytes of options", BODY_MAX) : 0;
}

static int update(struct silt_client *c, const struct silt_cli *cli, const struct wishes *w,
                  struct silt_error *e)
{
    silt_auto_arena a = {0};
    silt_auto_buf body = {0};
    const struct silt_json *answer;
    char path[PATH_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, BODY_MAX);
    if (silt_id_check(silt_slice_of(cli->plain.items[0]), e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", cli->plain.items[0], "", e) < 0
        || write_wishes(&body, w, e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    q.method = "PATCH";
    return silt_client_call(c, &q, &a, &answer, e) < 0 ? -1 : print_state(cli, answer);
}

int silt_cli_update(int argc, char **argv)
{
    static struct silt_cli cli;
    static struct silt_client client;
    static struct wishes w;
    struct silt_error e;
    const struct silt_option own[] = {
        {.name = "sleep-after", .value = &w.sleep_after},
        {.name = "stop-after", .value = &w.stop_after},
        {.name = "ttl", .value = &w.ttl},
        {.name = "keep-alive", .value = &w.keep_alive},
        {.name = "keep-processes", .value = &w.keep_processes},
        {.name = "remove-after-stop", .value = &w.remove_after_stop},
        {.name = "auto-snapshot", .value = &w.auto_snapshot},
        {.name = "cpu", .value = &w.limits.cpu},
        {.name = "memory", .value = &w.limits.memory},
        {.name = "disk", .value = &w.limits.disk},
        {.name = "pids", .value = &w.limits.pids},
        {.name = "network", .value = &w.network},
        {.name = "allow", .words = &w.allow},
        {.name = "env", .letter = 'e', .words = &w.env},
        {.name = "label", .words = &w.labels},
    };
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count != 1)
        return silt_cli_usage();
    int got = silt_client_init(&client, cli.server, cli.token_file, &e);
    if (got == 0)
        got = update(&client, &cli, &w, &e);
    silt_client_fini(&client);
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}
