/* SPDX-License-Identifier: Apache-2.0 */
/* silt exec: runs a command in a sandbox, prints its output as it arrives and exits with its
 * status. The command runs in a copy of its session's shell; with --keep in that shell itself, and
 * the output is printed at its end. */
#include "base/fd.h"
#include "base/id.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"
#include "cli/core/events.h"
#include "cli/command/process.h"
#include "cli/core/wait.h"

enum { PATH_SIZE = 1024 };

struct order {
    struct silt_cli cli;
    const char *session, *cwd, *timeout;
    bool no_session, keep;
    struct silt_words env;
};

static int write_body(const struct order *o, struct silt_buf *b, struct silt_error *e)
{
    silt_json_open(b, '{');
    silt_command_add_text(b, "sessionId", o->no_session ? "__DISABLE_SESSION__" : o->session);
    silt_command_add_text(b, "cwd", o->cwd);
    silt_json_key(b, SILT_LIT("bytes"));
    silt_json_bool(b, true);
    if (silt_command_add_time(b, "timeoutMs", o->timeout, e) < 0
        || silt_command_add_env(b, &o->env, e) < 0
        || silt_command_add_words(b, &o->cli.rest, e) < 0)
        return -1;
    silt_json_close(b, '}');
    return 0;
}

static int on_event(void *to, const struct silt_json *event, struct silt_error *e)
{
    silt_slice type = silt_cli_text(event, "type");
    if (silt_slice_eq(type, SILT_LIT("stdout")))
        return silt_tail_write(event, STDOUT_FILENO, e);
    if (silt_slice_eq(type, SILT_LIT("stderr")))
        return silt_tail_write(event, STDERR_FILENO, e);
    if (silt_slice_eq(type, SILT_LIT("error"))) {
        silt_slice why = silt_cli_text(event, "error");
        return silt_fail(e, SILT_GONE, "%.*s", (int)why.len, why.data);
    }
    const struct silt_json *notice = silt_json_get(event, SILT_LIT("notice"));
    if (notice != NULL) {
        silt_slice text = silt_cli_text(notice, "message");
        (void)fprintf(stderr, "silt: %.*s\n", (int)text.len, text.data);
    }
    if (!silt_slice_eq(type, SILT_LIT("complete")))
        return 0;
    *(int *)to = silt_cli_status(event);
    return 1;
}

static int stream(struct silt_client *c, const struct silt_client_request *q, int *out,
                  struct silt_error *e)
{
    if (silt_wait_catch_interrupt(e) < 0)
        return -1;
    int got = silt_events_follow(c, q, on_event, out, e);
    if (got == 0)
        return silt_fail(e, SILT_GONE, "the stream ended before the command did");
    return got > 0 ? 0 : -1;
}

static int collect(struct silt_client *c, const struct silt_client_request *q, int *out,
                   struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    c->timeout_ms = -1;
    if (silt_wait_catch_interrupt(e) < 0 || silt_client_call(c, q, &a, &answer, e) < 0
        || silt_fd_write_all(STDOUT_FILENO, silt_cli_text(answer, "stdout"), e) < 0
        || silt_fd_write_all(STDERR_FILENO, silt_cli_text(answer, "stderr"), e) < 0)
        return -1;
    *out = silt_cli_status(answer);
    return 0;
}

static int parse(struct order *o, int argc, char **argv, struct silt_error *e)
{
    const struct silt_option own[] = {
        {.name = "session", .value = &o->session},
        {.name = "cwd", .letter = 'w', .value = &o->cwd},
        {.name = "timeout", .value = &o->timeout},
        {.name = "env", .letter = 'e', .words = &o->env},
        {.name = "no-session", .flag = &o->no_session},
        {.name = "keep", .flag = &o->keep},
    };
    struct silt_options options = {.table = own, .count = SILT_COUNT(own), .plain_max = 1};
    if (silt_cli_parse(&o->cli, &options, argc, argv, e) < 0)
        return -1;
    if (o->cli.plain.count != 1 || o->cli.rest.count == 0)
        return silt_cli_misused(e);
    if (o->no_session && (o->session != NULL || o->keep))
        return silt_fail(e, SILT_INVALID, "--no-session goes with neither --session nor --keep");
    return silt_id_check(silt_slice_of(o->cli.plain.items[0]), e);
}

static int run(struct order *o, struct silt_client *c, int *out, struct silt_error *e)
{
    silt_auto_buf body;
    char path[PATH_SIZE];
    silt_buf_init(&body, 4 * (size_t)SILT_CLI_COMMAND_MAX);
    if (write_body(o, &body, e) < 0
        || silt_cli_path(path, sizeof(path), "/sandboxes/", o->cli.plain.items[0],
                         o->keep ? "/api/execute" : "/api/execute/stream", e)
               < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    return o->keep ? collect(c, &q, out, e) : stream(c, &q, out, e);
}

int silt_cli_exec(int argc, char **argv)
{
    static struct order order;
    static struct silt_client client;
    int status = 0;
    struct silt_error e = {0};
    if (parse(&order, argc, argv, &e) < 0
        || silt_client_init(&client, order.cli.server, order.cli.token_file, &e) < 0)
        return silt_cli_fail(&e);
    int got = run(&order, &client, &status, &e);
    silt_client_fini(&client);
    if (got < 0 && e.code == SILT_INTERRUPTED) {
        const char *id = order.cli.plain.items[0];
        (void)fprintf(stderr, "\nsilt: detached; the command goes on in sandbox %s%s%s\n", id,
                      order.keep ? "" : "\nSee: silt ps ", order.keep ? "" : id);
        return SILT_EXIT_INTERRUPTED;
    }
    return got < 0 ? silt_cli_fail(&e) : status;
}
