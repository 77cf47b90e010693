/* SPDX-License-Identifier: Apache-2.0 */
/* silt exec: a command in a sandbox, its output as it comes, its exit status as ours. The command
 * runs in a copy of its session's shell; with --keep in that shell itself, and answers at its end.
 */
#include "base/fd.h"
#include "base/id.h"
#include "cli/cli.h"
#include "cli/sse.h"

#include <math.h>

enum { COMMAND_MAX = 16 * 1024 * 1024, PATH_SIZE = 1024 };

struct order {
    struct silt_cli cli;
    const char *session, *cwd, *timeout;
    bool no_session, keep;
    struct silt_words env;
};

struct outcome {
    bool complete;
    int status;
};

/* "5s", "1.5m", "200ms", "2h"; a bare number is seconds. */
static int parse_timeout(const char *text, int64_t *ret_ms, struct silt_error *e)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"", 1000}, {"m", 60000}, {"h", 3600000}};
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; i < SILT_COUNT(units); i++) {
        double ms = number * units[i].ms;
        if (end == text || strcmp(end, units[i].name) != 0 || !isfinite(ms) || ms < 1 || ms > 1e12)
            continue;
        *ret_ms = (int64_t)ms;
        return 0;
    }
    return silt_fail(e, SILT_INVALID, "--timeout %s: not a time like 5s, 500ms, 2m or 1h", text);
}

static void add_quoted(struct silt_buf *b, const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "@%_+=:,./-";
    if (word[0] != 0 && strspn(word, safe) == strlen(word)) {
        silt_buf_add(b, silt_slice_of(word));
        return;
    }
    silt_buf_add_byte(b, '\'');
    for (const char *p = word; *p != 0; p++)
        if (*p == '\'')
            silt_buf_add(b, SILT_LIT("'\\''"));
        else
            silt_buf_add_byte(b, *p);
    silt_buf_add_byte(b, '\'');
}

/* One word is shell text as it is; several are a command and its arguments. */
static void join(const struct silt_words *words, struct silt_buf *ret)
{
    if (words->count == 1) {
        silt_buf_add(ret, silt_slice_of(words->items[0]));
        return;
    }
    for (size_t i = 0; i < words->count; i++) {
        if (i > 0)
            silt_buf_add_byte(ret, ' ');
        add_quoted(ret, words->items[i]);
    }
}

static int add_env(const struct silt_words *env, struct silt_buf *b, struct silt_error *e)
{
    if (env->count == 0)
        return 0;
    silt_json_key(b, SILT_LIT("env"));
    silt_json_open(b, '{');
    for (size_t i = 0; i < env->count; i++) {
        const char *word = env->items[i], *equals = strchr(word, '=');
        silt_slice name = {word, equals != NULL ? (size_t)(equals - word) : 0};
        if (!silt_id_is_env_name(name))
            return silt_fail(e, SILT_INVALID, "--env %s: not NAME=VALUE", word);
        silt_json_key(b, name);
        silt_json_string(b, silt_slice_of(equals + 1));
    }
    silt_json_close(b, '}');
    return 0;
}

static void add_text(struct silt_buf *b, silt_slice key, const char *value)
{
    if (value == NULL)
        return;
    silt_json_key(b, key);
    silt_json_string(b, silt_slice_of(value));
}

static int write_body(const struct order *o, struct silt_buf *b, struct silt_error *e)
{
    silt_auto_buf command;
    int64_t timeout_ms;
    silt_buf_init(&command, COMMAND_MAX);
    join(&o->cli.rest, &command);
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("command"));
    silt_json_string(b, silt_buf_slice(&command));
    add_text(b, SILT_LIT("sessionId"), o->no_session ? "__DISABLE_SESSION__" : o->session);
    add_text(b, SILT_LIT("cwd"), o->cwd);
    if (o->timeout != NULL) {
        if (parse_timeout(o->timeout, &timeout_ms, e) < 0)
            return -1;
        silt_json_key(b, SILT_LIT("timeoutMs"));
        silt_json_i64(b, timeout_ms);
    }
    if (add_env(&o->env, b, e) < 0)
        return -1;
    silt_json_close(b, '}');
    if (b->broken || command.broken)
        return silt_fail(e, SILT_LIMIT, "command larger than %d bytes", COMMAND_MAX);
    return 0;
}

static void take_status(const struct silt_json *answer, struct outcome *out)
{
    int64_t status = silt_cli_number(answer, "exitCode");
    *out = (struct outcome){true, status < 0 || status > 255 ? SILT_EXIT_OWN : (int)status};
}

static int on_event(silt_slice data, struct outcome *out, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *event;
    silt_arena_init(&a, 4 * (size_t)SILT_SSE_EVENT_MAX);
    if (silt_json_read(&a, data, &event, e) < 0)
        return silt_because(e, "event of the stream");
    silt_slice type = silt_cli_text(event, "type");
    if (silt_slice_eq(type, SILT_LIT("stdout")))
        return silt_fd_write_all(STDOUT_FILENO, silt_cli_text(event, "data"), e);
    if (silt_slice_eq(type, SILT_LIT("stderr")))
        return silt_fd_write_all(STDERR_FILENO, silt_cli_text(event, "data"), e);
    if (silt_slice_eq(type, SILT_LIT("error"))) {
        silt_slice why = silt_cli_text(event, "error");
        return silt_fail(e, SILT_GONE, "%.*s", (int)why.len, why.data);
    }
    if (silt_slice_eq(type, SILT_LIT("complete")))
        take_status(event, out);
    return 0;
}

static int follow(struct silt_client *c, struct silt_sse *sse, struct outcome *out,
                  struct silt_error *e)
{
    silt_slice piece, data;
    int got;
    while (!out->complete && (got = silt_client_read(c, &piece, e)) != 0) {
        if (got < 0)
            return -1;
        while ((got = silt_sse_next(sse, &piece, &data, e)) != 0)
            if (got < 0 || on_event(data, out, e) < 0)
                return -1;
    }
    if (!out->complete)
        return silt_fail(e, SILT_GONE, "the stream ended before the command did");
    return 0;
}

static int stream(struct silt_client *c, const struct silt_client_request *q, struct outcome *out,
                  struct silt_error *e)
{
    struct silt_sse sse;
    if (silt_client_catch_interrupt(e) < 0 || silt_client_ask(c, q, e) < 0)
        return -1;
    if (c->head.status != 200)
        return silt_client_fail(c, e);
    c->timeout_ms = -1; /* a silent command is a working command */
    silt_sse_init(&sse);
    int got = follow(c, &sse, out, e);
    silt_sse_fini(&sse);
    return got;
}

static int collect(struct silt_client *c, const struct silt_client_request *q, struct outcome *out,
                   struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    c->timeout_ms = -1;
    if (silt_client_catch_interrupt(e) < 0 || silt_client_call(c, q, &a, &answer, e) < 0
        || silt_fd_write_all(STDOUT_FILENO, silt_cli_text(answer, "stdout"), e) < 0
        || silt_fd_write_all(STDERR_FILENO, silt_cli_text(answer, "stderr"), e) < 0)
        return -1;
    take_status(answer, out);
    return 0;
}

static int parse(struct order *o, int argc, char **argv, struct silt_error *e)
{
    const struct silt_option own[] = {
        {.name = "session", .value = &o->session},      {.name = "cwd", .value = &o->cwd},
        {.name = "timeout", .value = &o->timeout},      {.name = "env", .words = &o->env},
        {.name = "no-session", .flag = &o->no_session}, {.name = "keep", .flag = &o->keep},
    };
    struct silt_options options = {.table = own, .count = SILT_COUNT(own), .plain_max = 1};
    if (silt_cli_parse(&o->cli, &options, argc, argv, e) < 0)
        return -1;
    if (o->cli.plain.count != 1 || o->cli.rest.count == 0)
        return silt_fail(e, SILT_INVALID,
                         "usage: silt exec ID [OPTION...] -- COMMAND [ARGUMENT...]");
    return silt_id_check(silt_slice_of(o->cli.plain.items[0]), e);
}

static int run(struct order *o, struct silt_client *c, struct outcome *out, struct silt_error *e)
{
    silt_auto_buf body;
    char path[PATH_SIZE];
    silt_buf_init(&body, 4 * (size_t)COMMAND_MAX);
    if (write_body(o, &body, e) < 0
        || silt_cli_path(path, sizeof(path), "/sandboxes/", o->cli.plain.items[0],
                         o->keep ? "/api/execute" : "/api/execute/stream", e)
               < 0)
        return -1;
    struct silt_client_request q = {.method = "POST",
                                    .path = path,
                                    .content_type = "application/json",
                                    .body = silt_buf_slice(&body),
                                    .file = -1};
    return o->keep ? collect(c, &q, out, e) : stream(c, &q, out, e);
}

int silt_cli_exec(int argc, char **argv)
{
    static struct order order;
    static struct silt_client client;
    struct outcome out = {0};
    struct silt_error e = {0};
    if (parse(&order, argc, argv, &e) < 0
        || silt_client_init(&client, order.cli.server, order.cli.token_file, &e) < 0)
        return silt_cli_fail(&e);
    int got = run(&order, &client, &out, &e);
    silt_client_fini(&client);
    if (got < 0 && e.code == SILT_INTERRUPTED) {
        (void)fprintf(stderr, "\nsilt: detached; the command goes on in sandbox %s\n",
                      order.cli.plain.items[0]);
        return SILT_EXIT_INTERRUPTED;
    }
    return got < 0 ? silt_cli_fail(&e) : out.status;
}
