/* SPDX-License-Identifier: Apache-2.0 */
/* silt ps, logs, kill: the background commands of a sandbox. */
#include "cli/command/process.h"
#include "base/fd.h"
#include "base/id.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"
#include "cli/core/wait.h"
#include "cli/file/source.h"

int silt_process_route(char out[SILT_PROCESS_ROUTE_SIZE], const char *id, const char *name,
                       const char *after, struct silt_error *e)
{
    char part[SILT_PROCESS_ROUTE_SIZE / 2] = "";
    if (silt_id_check(silt_slice_of(id), e) < 0)
        return -1;
    if (name != NULL && name[0] == 0)
        return silt_fail(e, SILT_INVALID, "an empty process id\nSee: silt ps %s --all", id);
    if (name != NULL && silt_cli_path(part, sizeof(part), "/", name, "", e) < 0)
        return -1;
    int len =
        snprintf(out, SILT_PROCESS_ROUTE_SIZE, "/v1/sandboxes/%s/processes%s%s", id, part, after);
    if (len < 0 || len >= SILT_PROCESS_ROUTE_SIZE)
        return silt_fail(e, SILT_INVALID, "name of process too long");
    return 0;
}

/* ps */

struct listing {
    struct silt_cli cli;
    bool all;
};

static void print_head(void)
{
    (void)printf("%-28s %7s %-10s %4s %-20s %s\n", "ID", "PID", "STATUS", "EXIT", "STARTED (UTC)",
                 "COMMAND");
}

static void print_row(const struct silt_json *p)
{
    const struct silt_json *code = silt_json_get(p, SILT_LIT("exitCode"));
    silt_slice id = silt_cli_text(p, "id"), status = silt_cli_text(p, "status"),
               kind = silt_cli_text(p, "kind");
    silt_slice start = silt_cli_text(p, "startedAt");
    char exit[24] = "";
    if (kind.len > 0 && !silt_slice_eq(kind, SILT_LIT("process")))
        status = kind; /* a process without a record: the kind of its control group */
    if (code != NULL && code->type == SILT_JSON_INT)
        (void)snprintf(exit, sizeof(exit), "%lld", (long long)code->integer);
    (void)printf("%-28.*s %7lld %-10.*s %4s %-20.*s ", (int)id.len, id.data,
                 (long long)silt_cli_number(p, "pid"), (int)status.len, status.data, exit,
                 (int)(start.len < 19 ? start.len : 19), start.data);
    silt_cli_print(silt_cli_text(p, "command"));
    (void)putchar('\n');
}

static bool is_running(const struct silt_json *p)
{
    silt_slice status = silt_cli_text(p, "status");
    return silt_slice_eq(status, SILT_LIT("running"))
           || silt_slice_eq(status, SILT_LIT("starting"));
}

static void print_table(const struct listing *l, const struct silt_json *processes)
{
    size_t shown = 0;
    for (const struct silt_json *p = processes->items.first; p != NULL; p = p->next) {
        if (!l->all && !is_running(p))
            continue;
        if (shown++ == 0)
            print_head();
        print_row(p);
    }
    if (shown == 0)
        (void)fprintf(stderr, "silt: no %sprocesses%s\n", l->all ? "" : "running ",
                      l->all || processes->items.count == 0 ? "" : "; --all shows ended ones");
}

static int list(struct listing *l, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[SILT_PROCESS_ROUTE_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_process_route(path, l->cli.plain.items[0], NULL, "", e) < 0)
        return -1;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    const struct silt_json *processes = silt_json_get(answer, SILT_LIT("processes"));
    if (processes == NULL || processes->type != SILT_JSON_ARRAY)
        return silt_fail(e, SILT_PROTOCOL, "answer without processes");
    if (l->cli.json)
        silt_cli_print_json(processes);
    else
        print_table(l, processes);
    return 0;
}

int silt_cli_ps(int argc, char **argv)
{
    static struct listing l;
    static struct silt_client client;
    struct silt_error e;
    const struct silt_option own[] = {{.name = "all", .letter = 'a', .flag = &l.all}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&l.cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (l.cli.plain.count != 1)
        return silt_cli_usage();
    if (silt_client_init(&client, l.cli.server, l.cli.token_file, &e) < 0)
        return silt_cli_fail(&e);
    int got = list(&l, &client, &e);
    silt_client_fini(&client);
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}

/* kill */

/* DELETE below /v1 also removes the record of a process that has ended; the compatible route keeps
 * it, and knows only processes with a record. */
static int end_route(char out[SILT_PROCESS_ROUTE_SIZE], const char *id, const char *name,
                     struct silt_error *e)
{
    char before[SILT_PROCESS_ROUTE_SIZE / 2];
    if (strncmp(name, "pid:", 4) == 0)
        return silt_process_route(out, id, name, "", e);
    if (silt_id_check(silt_slice_of(id), e) < 0)
        return -1;
    (void)snprintf(before, sizeof(before), "/sandboxes/%s/api/process/", id);
    return silt_cli_path(out, SILT_PROCESS_ROUTE_SIZE, before, name, "", e);
}

int silt_process_end(struct silt_client *c, const char *id, const char *name, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[SILT_PROCESS_ROUTE_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (end_route(path, id, name, e) < 0)
        return -1;
    struct silt_client_request q = {.method = "DELETE", .path = path, .file = -1};
    return silt_client_call(c, &q, &a, &answer, e);
}

/* That route does not check the sandbox: for a missing one it would report a missing process. */
static int check_box(struct silt_client *c, const char *id, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[SILT_PROCESS_ROUTE_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_id_check(silt_slice_of(id), e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", id, "", e) < 0)
        return -1;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    return silt_client_call(c, &q, &a, &answer, e);
}

int silt_process_feed(struct silt_client *c, const char *id, const char *name, int fd,
                      struct silt_error *e)
{
    static struct silt_source_fd source;
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[SILT_PROCESS_ROUTE_SIZE];
    struct silt_client_request q = {.method = "PUT",
                                    .path = path,
                                    .content_type = "application/octet-stream",
                                    .file = -1,
                                    .source = fd >= 0 ? &source.source : NULL};
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_source_from_fd(&source, fd, NULL);
    c->timeout_ms = -1; /* a command reads when it likes to */
    c->code[0] = 0;
    if (silt_process_route(path, id, name, "/stdin?close=true", e) < 0)
        return -1;
    return silt_client_call(c, &q, &a, &answer, e);
}

static int send_signal(struct silt_client *c, const char *id, const char *name, const char *signal,
                       struct silt_error *e)
{
    silt_auto_arena a;
    silt_auto_buf body;
    const struct silt_json *answer;
    char path[SILT_PROCESS_ROUTE_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, 1024);
    silt_json_open(&body, '{');
    silt_command_add_text(&body, "signal", signal);
    silt_json_close(&body, '}');
    if (silt_process_route(path, id, name, "/signal", e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    return silt_client_call(c, &q, &a, &answer, e);
}

struct ending {
    struct silt_cli cli;
    const char *signal;
    bool all;
};

static int end_each(const struct ending *k, struct silt_client *c)
{
    const struct silt_words *w = &k->cli.plain;
    struct silt_error e;
    int status = EXIT_SUCCESS;
    for (size_t i = 1; i < w->count; i++) {
        const char *id = w->items[0], *name = w->items[i];
        int got = k->signal != NULL ? send_signal(c, id, name, k->signal, &e)
                                    : silt_process_end(c, id, name, &e);
        if (got < 0)
            status = silt_cli_fail(&e);
        else
            (void)puts(name);
    }
    return status;
}

/* Prints the processes that it found, one per line. */
static int end_all(const struct ending *k, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[SILT_PROCESS_ROUTE_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_process_route(path, k->cli.plain.items[0], NULL, "", e) < 0)
        return -1;
    struct silt_client_request q = {.method = "DELETE", .path = path, .file = -1};
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    const struct silt_json *ended = silt_json_get(answer, SILT_LIT("processes"));
    if (ended == NULL || ended->type != SILT_JSON_ARRAY)
        return silt_fail(e, SILT_PROTOCOL, "answer without processes");
    for (const struct silt_json *p = ended->items.first; p != NULL; p = p->next) {
        silt_cli_print(silt_cli_text(p, "id"));
        (void)putchar('\n');
    }
    int64_t left = silt_cli_number(answer, "left");
    return left == 0 ? 0
                     : silt_fail(e, SILT_CONFLICT, "%lld processes were killed and have not ended",
                                 (long long)left);
}

int silt_cli_kill(int argc, char **argv)
{
    static struct ending k;
    static struct silt_client client;
    struct silt_error e;
    int status = EXIT_SUCCESS;
    const struct silt_option own[] = {{.name = "signal", .letter = 's', .value = &k.signal},
                                      {.name = "all", .letter = 'a', .flag = &k.all}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&k.cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (k.cli.plain.count == 0 || k.all != (k.cli.plain.count == 1) || (k.all && k.signal != NULL))
        return silt_cli_usage();
    if (silt_client_init(&client, k.cli.server, k.cli.token_file, &e) < 0)
        return silt_cli_fail(&e);
    if (check_box(&client, k.cli.plain.items[0], &e) < 0)
        status = silt_cli_fail(&e);
    else if (!k.all)
        status = end_each(&k, &client);
    else if (end_all(&k, &client, &e) < 0)
        status = silt_cli_fail(&e);
    silt_client_fini(&client);
    return status;
}

/* logs */

struct logs {
    struct silt_cli cli;
    struct silt_tail tail;
    bool follow, only_stdout, only_stderr;
};

/* Says so if the beginning of the log is missing. */
static void tell_dropped(const struct silt_client *c)
{
    struct silt_error e;
    uint64_t bytes = 0;
    silt_slice text = silt_http_field(&c->head, SILT_LIT("x-silt-dropped"));
    if (silt_slice_to_u64(text, 1, UINT64_MAX, &bytes, &e) == 0)
        (void)fprintf(stderr, "silt: %llu bytes of older output are no longer kept\n",
                      (unsigned long long)bytes);
}

static int print_logs(struct logs *l, struct silt_client *c, struct silt_error *e)
{
    char path[SILT_PROCESS_ROUTE_SIZE];
    silt_slice piece;
    int got;
    const char *after = l->only_stdout   ? "/logs?stream=stdout"
                        : l->only_stderr ? "/logs?stream=stderr"
                                         : "/logs";
    if (silt_process_route(path, l->tail.id, l->tail.name, after, e) < 0)
        return -1;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    if (silt_client_ask(c, &q, e) < 0)
        return -1;
    if (c->head.status != 200)
        return silt_client_fail(c, e);
    tell_dropped(c);
    while ((got = silt_client_read(c, &piece, e)) > 0)
        if (silt_fd_write_all(STDOUT_FILENO, piece, e) < 0)
            return -1;
    return got;
}

static int parse_logs(struct logs *l, int argc, char **argv, struct silt_error *e)
{
    const struct silt_option own[] = {{.name = "follow", .letter = 'f', .flag = &l->follow},
                                      {.name = "stdout", .flag = &l->only_stdout},
                                      {.name = "stderr", .flag = &l->only_stderr}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&l->cli, &options, argc, argv, e) < 0)
        return -1;
    if (l->cli.plain.count != 2 || (l->only_stdout && l->only_stderr))
        return silt_cli_misused(e);
    l->tail = (struct silt_tail){.id = l->cli.plain.items[0],
                                 .name = l->cli.plain.items[1],
                                 .no_stdout = l->only_stderr,
                                 .no_stderr = l->only_stdout};
    return 0;
}

int silt_cli_logs(int argc, char **argv)
{
    static struct logs l;
    static struct silt_client client;
    struct silt_error e;
    if (parse_logs(&l, argc, argv, &e) < 0
        || silt_client_init(&client, l.cli.server, l.cli.token_file, &e) < 0
        || silt_wait_catch_interrupt(&e) < 0)
        return silt_cli_fail(&e);
    int got = l.follow ? silt_tail_follow(&l.tail, &client, &e) : print_logs(&l, &client, &e);
    silt_client_fini(&client);
    if (got < 0 && e.code == SILT_INTERRUPTED)
        return SILT_EXIT_INTERRUPTED;
    return got < 0 ? silt_cli_fail(&e) : l.tail.status;
}
