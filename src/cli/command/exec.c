/* SPDX-License-Identifier: Apache-2.0 */
/* silt exec: runs a command in a sandbox, prints its output as it arrives and exits with its
 * status. The command runs in a copy of its session's shell; with --keep in that shell itself, and
 * the output is printed at its end; with -t in a terminal. A child passes standard input on while
 * this process reads the output. */
#include "base/fd.h"
#include "base/id.h"
#include "cli/core/box.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"
#include "cli/core/events.h"
#include "cli/command/process.h"
#include "cli/command/shell.h"
#include "cli/core/wait.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

enum { PATH_SIZE = 1024, CLOSED_PIPE = 128 + SIGPIPE };

struct order {
    struct silt_cli cli;
    const char *session, *cwd, *timeout, *user;
    bool no_session, keep, interactive, terminal, removes;
    struct silt_words env;
    bool input; /* standard input is passed on */
};

struct running {
    const struct order *order;
    char name[SILT_ID_MAX + 1]; /* of its process; "": not started yet */
    pid_t feeder;               /* passes standard input on; 0: none */
    bool closed;                /* nobody reads our output any more */
    int status;
    bool crowded; /* maybe: processes were refused while it ran, or it took too long */
};

static int write_body(const struct order *o, struct silt_buf *b, struct silt_error *e)
{
    silt_json_open(b, '{');
    silt_command_add_text(b, "sessionId", o->no_session ? "__DISABLE_SESSION__" : o->session);
    silt_command_add_text(b, "cwd", o->cwd);
    silt_command_add_text(b, "user", o->user);
    silt_json_key(b, SILT_LIT("bytes"));
    silt_json_bool(b, true);
    silt_json_key(b, SILT_LIT("stdin"));
    silt_json_bool(b, o->input);
    if (silt_command_add_time(b, "timeoutMs", o->timeout, e) < 0
        || silt_command_add_env(b, &o->env, e) < 0
        || silt_command_add_words(b, &o->cli.rest, e) < 0)
        return -1;
    silt_json_close(b, '}');
    return 0;
}

/* In the child. A command that does not read its input is no error. */
static int feed(const struct running *x, struct silt_error *e)
{
    static struct silt_client c;
    const struct silt_cli *cli = &x->order->cli;
    if (silt_client_init(&c, cli->server, cli->token_file, e) < 0)
        return -1;
    int got = silt_process_feed(&c, cli->plain.items[0], x->name, STDIN_FILENO, e);
    return got < 0 && strcmp(c.code, "STDIN_CLOSED") != 0
                   && strcmp(c.code, "PROCESS_NOT_FOUND") != 0
               ? -1
               : 0;
}

static int start_feeding(struct running *x, struct silt_error *e)
{
    (void)fflush(NULL);
    x->feeder = fork();
    if (x->feeder < 0)
        return silt_fail_errno(e, "fork");
    if (x->feeder > 0)
        return 0;
    _exit(feed(x, e) < 0 && e->code != SILT_INTERRUPTED ? silt_cli_fail(e) : 0);
}

/* A command that goes on without us must not wait for our input for ever. */
static void stop_feeding(struct running *x, struct silt_client *c, bool goes_on)
{
    struct silt_error e;
    if (x->feeder <= 0)
        return;
    (void)kill(x->feeder, SIGKILL);
    while (waitpid(x->feeder, NULL, 0) < 0 && errno == EINTR)
        ;
    if (goes_on)
        (void)silt_process_feed(c, x->order->cli.plain.items[0], x->name, -1, &e);
}

static int write_output(struct running *x, const struct silt_json *event, int fd,
                        struct silt_error *e)
{
    if (silt_tail_write(event, fd, e) == 0)
        return 0;
    x->closed = e->sys == EPIPE;
    return -1;
}

static int on_event(void *to, const struct silt_json *event, struct silt_error *e)
{
    struct running *x = to;
    silt_slice type = silt_cli_text(event, "type");
    if (silt_slice_eq(type, SILT_LIT("stdout")))
        return write_output(x, event, STDOUT_FILENO, e);
    if (silt_slice_eq(type, SILT_LIT("stderr")))
        return write_output(x, event, STDERR_FILENO, e);
    if (silt_slice_eq(type, SILT_LIT("error"))) {
        silt_slice why = silt_cli_text(event, "error");
        return silt_fail(e, SILT_GONE, "%.*s", (int)why.len, why.data);
    }
    const struct silt_json *notice = silt_json_get(event, SILT_LIT("notice"));
    if (notice != NULL) {
        silt_slice text = silt_cli_text(notice, "message");
        (void)fprintf(stderr, "silt: %.*s\n", (int)text.len, text.data);
    }
    if (silt_slice_eq(type, SILT_LIT("start")))
        return silt_slice_to_cstr(silt_cli_text(event, "processId"), x->name, sizeof(x->name), e)
                           < 0
                       || (x->order->input && start_feeding(x, e) < 0)
                   ? -1
                   : 0;
    if (!silt_slice_eq(type, SILT_LIT("complete")))
        return 0;
    x->status = silt_cli_status(event);
    silt_slice cause = silt_cli_text(event, "cause");
    x->crowded =
        silt_slice_eq(cause, SILT_LIT("pids")) || silt_slice_eq(cause, SILT_LIT("timeout"));
    return 1;
}

/* As at the end of a pipeline of this machine: a command that nobody reads ends. */
static int end_unread(struct running *x, struct silt_client *c, struct silt_error *e)
{
    silt_close_fd(&c->fd);
    x->status = CLOSED_PIPE;
    return silt_process_end(c, x->order->cli.plain.items[0], x->name, e) < 0
                   && e->code != SILT_NOT_FOUND
               ? silt_because(e, "end the command that nobody reads")
               : 0;
}

static int stream(struct silt_client *c, const struct silt_client_request *q, struct running *x,
                  struct silt_error *e)
{
    if (silt_wait_catch_interrupt(e) < 0)
        return -1;
    (void)signal(SIGPIPE, SIG_IGN); /* write_output sees it */
    int got = silt_events_follow(c, q, on_event, x, e);
    if (got == 0)
        got = silt_fail(e, SILT_GONE, "the stream ended before the command did");
    stop_feeding(x, c, got < 0 && e->code == SILT_INTERRUPTED && !x->order->removes);
    if (x->closed)
        return end_unread(x, c, e);
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

/* Standard input is passed on unless it is a terminal, closed, or /dev/null. */
static bool has_input(void)
{
    struct stat st;
    if (fstat(STDIN_FILENO, &st) < 0 || isatty(STDIN_FILENO) == 1)
        return false;
    return !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3);
}

static int check(struct order *o, struct silt_error *e)
{
    if (o->cli.plain.count != 1 || o->cli.rest.count == 0)
        return silt_cli_misused(e);
    if (o->no_session && (o->session != NULL || o->keep))
        return silt_fail(e, SILT_INVALID, "--no-session goes with neither --session nor --keep");
    if (o->keep && (o->interactive || o->terminal || o->user != NULL))
        return silt_fail(e, SILT_INVALID, "--keep goes with neither -i, -t nor -u");
    if (o->terminal && (o->user != NULL || o->timeout != NULL || o->session != NULL))
        return silt_fail(e, SILT_INVALID, "-t goes with neither -u, --timeout nor --session");
    o->input = !o->keep && !o->terminal && (o->interactive || has_input());
    return silt_id_check(silt_slice_of(o->cli.plain.items[0]), e);
}

static int parse(struct order *o, int argc, char **argv, struct silt_error *e)
{
    const struct silt_option own[] = {
        {.name = "interactive", .letter = 'i', .flag = &o->interactive},
        {.name = "tty", .letter = 't', .flag = &o->terminal},
        {.name = "session", .value = &o->session},
        {.name = "cwd", .letter = 'w', .value = &o->cwd},
        {.name = "env", .letter = 'e', .words = &o->env},
        {.name = "user", .letter = 'u', .value = &o->user},
        {.name = "timeout", .value = &o->timeout},
        {.name = "no-session", .flag = &o->no_session},
        {.name = "keep", .flag = &o->keep},
        {.name = "rm", .flag = &o->removes},
    };
    struct silt_options options = {.table = own, .count = SILT_COUNT(own), .plain_max = 1};
    return silt_cli_parse(&o->cli, &options, argc, argv, e) < 0 ? -1 : check(o, e);
}

static int run(const struct order *o, struct silt_client *c, int *ret_status, struct silt_error *e)
{
    silt_auto_buf body;
    char path[PATH_SIZE];
    struct running x = {.order = o};
    silt_buf_init(&body, 4 * (size_t)SILT_CLI_COMMAND_MAX);
    if (write_body(o, &body, e) < 0
        || silt_cli_path(path, sizeof(path), "/sandboxes/", o->cli.plain.items[0],
                         o->keep ? "/api/execute" : "/api/execute/stream", e)
               < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    int got = o->keep ? collect(c, &q, &x.status, e) : stream(c, &q, &x, e);
    *ret_status = x.status;
    if (x.crowded || (got < 0 && e->code != SILT_INTERRUPTED))
        silt_box_explain(c, o->cli.plain.items[0]);
    return got;
}

static int run_in_terminal(const struct order *o, struct silt_client *c, int *ret_status,
                           struct silt_error *e)
{
    struct silt_shell_order s = {
        .cli = &o->cli, .cwd = o->cwd, .env = &o->env, .catches = o->removes};
    return silt_shell_run(&s, c, ret_status, e);
}

static int run_either(const struct order *o, struct silt_client *c, int *ret_status,
                      struct silt_error *e)
{
    return o->terminal ? run_in_terminal(o, c, ret_status, e) : run(o, c, ret_status, e);
}

/* Signals wait until the sandbox exists, so that we know that it is ours. */
static int run_and_remove(const struct order *o, struct silt_client *c, int *ret_status,
                          struct silt_error *e)
{
    const char *id = o->cli.plain.items[0];
    struct silt_error why;
    if (silt_wait_hold_signals(e) < 0 || silt_box_make_own(c, id, e) < 0)
        return -1;
    int got = run_either(o, c, ret_status, e);
    silt_wait_forget_interrupt();
    silt_close_fd(&c->fd);
    if (silt_box_remove(c, id, &why) == 0)
        return got;
    if (got == 0)
        *e = why;
    else
        (void)silt_cli_fail(&why);
    return -1;
}

static void tell_detached(const struct order *o)
{
    const char *id = o->cli.plain.items[0];
    (void)fprintf(stderr, "\nsilt: detached; the command goes on in sandbox %s%s%s\n", id,
                  o->keep ? "" : "\nSee: silt ps ", o->keep ? "" : id);
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
    int got = order.removes ? run_and_remove(&order, &client, &status, &e) : -1;
    if (!order.removes && silt_box_make(&client, order.cli.plain.items[0], &e) == 0)
        got = run_either(&order, &client, &status, &e);
    silt_client_fini(&client);
    if (got < 0 && e.code == SILT_INTERRUPTED) {
        if (!order.removes)
            tell_detached(&order);
        return SILT_EXIT_INTERRUPTED;
    }
    return got < 0 ? silt_cli_fail(&e) : status;
}
