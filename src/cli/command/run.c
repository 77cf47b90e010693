/* SPDX-License-Identifier: Apache-2.0 */
/* silt run: starts a background process with an id and a log. With -d silt returns and the process
 * runs on; without it silt prints its output, and Ctrl-C ends it. */
#include "base/id.h"
#include "base/own.h"
#include "cli/core/box.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"
#include "cli/command/process.h"
#include "cli/core/wait.h"

struct order {
    struct silt_cli cli;
    const char *name, *session, *cwd, *timeout, *user;
    bool detach;
    struct silt_words env;
};

static int write_body(const struct order *o, struct silt_buf *b, struct silt_error *e)
{
    silt_json_open(b, '{');
    silt_command_add_text(b, "processId", o->name);
    silt_command_add_text(b, "sessionId", o->session);
    silt_command_add_text(b, "cwd", o->cwd);
    silt_command_add_text(b, "user", o->user);
    if (silt_command_add_time(b, "timeoutMs", o->timeout, e) < 0
        || silt_command_add_env(b, &o->env, e) < 0
        || silt_command_add_words(b, &o->cli.rest, e) < 0)
        return -1;
    silt_json_close(b, '}');
    return 0;
}

static int start(const struct order *o, struct silt_client *c, char name[SILT_ID_MAX + 1],
                 struct silt_error *e)
{
    silt_auto_buf body;
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[SILT_PROCESS_ROUTE_SIZE];
    silt_buf_init(&body, 4 * (size_t)SILT_CLI_COMMAND_MAX);
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (write_body(o, &body, e) < 0
        || silt_process_route(path, o->cli.plain.items[0], NULL, "", e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    int got = silt_client_call(c, &q, &a, &answer, e);
    if (got < 0 && silt_box_is_missing(c) && silt_box_make(c, o->cli.plain.items[0], e) == 0)
        got = silt_client_call(c, &q, &a, &answer, e);
    if (got < 0)
        return -1;
    return silt_slice_to_cstr(silt_cli_text(answer, "id"), name, SILT_ID_MAX + 1, e);
}

/* After Ctrl-C: prints the remaining output. The process may have ended by itself. */
static int end_it(struct silt_tail *t, struct silt_client *c, struct silt_error *e)
{
    silt_wait_forget_interrupt();
    if (silt_process_end(c, t->id, t->name, e) < 0 && e->code != SILT_NOT_FOUND)
        return silt_because(e, "end process %s", t->name);
    return silt_tail_follow(t, c, e);
}

static int run(const struct order *o, struct silt_client *c, int *ret_status, struct silt_error *e)
{
    char name[SILT_ID_MAX + 1];
    if (start(o, c, name, e) < 0)
        return -1;
    if (o->detach) {
        (void)puts(name);
        return 0;
    }
    struct silt_tail tail = {.id = o->cli.plain.items[0], .name = name};
    int got = silt_tail_follow(&tail, c, e);
    if (got < 0 && e->code == SILT_INTERRUPTED)
        got = end_it(&tail, c, e);
    *ret_status = tail.status;
    return got;
}

static int parse(struct order *o, int argc, char **argv, struct silt_error *e)
{
    const struct silt_option own[] = {
        {.name = "detach", .letter = 'd', .flag = &o->detach},
        {.name = "name", .value = &o->name},
        {.name = "session", .value = &o->session},
        {.name = "cwd", .letter = 'w', .value = &o->cwd},
        {.name = "env", .letter = 'e', .words = &o->env},
        {.name = "user", .letter = 'u', .value = &o->user},
        {.name = "timeout", .value = &o->timeout},
    };
    struct silt_options options = {.table = own, .count = SILT_COUNT(own), .plain_max = 1};
    if (silt_cli_parse(&o->cli, &options, argc, argv, e) < 0)
        return -1;
    if (o->cli.plain.count != 1 || o->cli.rest.count == 0)
        return silt_cli_misused(e);
    return 0;
}

int silt_cli_run(int argc, char **argv)
{
    static struct order order;
    static struct silt_client client;
    struct silt_error e = {0};
    int status = 0;
    if (parse(&order, argc, argv, &e) < 0
        || silt_client_init(&client, order.cli.server, order.cli.token_file, &e) < 0
        || (!order.detach && silt_wait_catch_interrupt(&e) < 0))
        return silt_cli_fail(&e);
    int got = run(&order, &client, &status, &e);
    silt_client_fini(&client);
    if (got < 0 && e.code == SILT_INTERRUPTED)
        return SILT_EXIT_INTERRUPTED;
    return got < 0 ? silt_cli_fail(&e) : status;
}
