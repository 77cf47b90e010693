/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/execute/stream: server-sent events that leave when the bytes arrive. The reader holds the
 * command back once it is a window behind; when it leaves, the command runs free. */
#include "api/command.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEEPALIVE_MS = 15000, EVENT_MAX = SILT_COMMAND_MAX * 7 };

struct stream {
    struct silt_exec_sink sink;
    struct silt_http_request *request; /* until on_gone */
    struct silt_command command;
    struct silt_sandbox *sandbox; /* borrowed, held */
    struct silt_exec *exec;
    struct silt_timer keepalive;
    struct silt_json_escape escape[2];
    bool begun;      /* the status line is out */
    bool detached;   /* answers once it started (background: true) */
    size_t uncredited;
};

static void free_stream(struct stream *t)
{
    silt_loop_cancel(t->sandbox->registry->loop, &t->keepalive);
    silt_sandbox_release(t->sandbox);
    free(t);
}

static void on_gone(struct silt_http_request *r)
{
    struct stream *t = r->owner;
    if (t->exec != NULL)
        silt_exec_leave(t->exec);
    free_stream(t);
}

static struct silt_http_request *let_go(struct stream *t)
{
    t->request->on_gone = NULL;
    t->request->on_drain = NULL;
    return t->request;
}

static void on_keepalive(struct silt_timer *timer)
{
    struct stream *t = silt_container_of(timer, struct stream, keepalive);
    silt_http_write(t->request, SILT_LIT(": keep-alive\n\n"));
    silt_loop_after(t->sandbox->registry->loop, &t->keepalive, KEEPALIVE_MS);
}

static void open_event(struct silt_buf *b, const char *type)
{
    silt_buf_addf(b, "event: %s\ndata: {\"type\":\"%s\"", type, type);
}

static void send_event(struct stream *t, struct silt_buf *b)
{
    silt_api_timestamp(b);
    silt_json_close(b, '}');
    silt_buf_add(b, SILT_LIT("\n\n"));
    silt_http_write(t->request, silt_buf_slice(b));
    silt_loop_after(t->sandbox->registry->loop, &t->keepalive, KEEPALIVE_MS);
}

static void begin(struct stream *t, int32_t pid)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    if (t->begun)
        return;
    t->begun = true;
    silt_http_begin(t->request, 200, SILT_LIT("text/event-stream"),
                    SILT_LIT("Cache-Control: no-cache\r\n"));
    open_event(&b, "start");
    silt_json_key(&b, SILT_LIT("command"));
    silt_json_string(&b, t->command.request.command);
    if (pid > 0) {
        silt_json_key(&b, SILT_LIT("pid"));
        silt_json_i64(&b, pid);
    }
    if (t->command.choice.given) {
        silt_json_key(&b, SILT_LIT("sessionId"));
        silt_json_string(&b, t->command.choice.name);
    }
    send_event(t, &b);
}

/* The text of an output event; `end` also tells what is left of a cut character. */
static void send_output(struct stream *t, int stream, silt_slice bytes, bool end)
{
    static const char *const names[] = {"stdout", "stderr"};
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    open_event(&b, names[stream - 1]);
    silt_json_key(&b, SILT_LIT("data"));
    silt_buf_add_byte(&b, '"');
    size_t before = b.len;
    silt_json_escape(&t->escape[stream - 1], &b, bytes);
    if (end)
        silt_json_escape_end(&t->escape[stream - 1], &b);
    if (b.len == before)
        return; /* only part of a character, or nothing but NUL */
    silt_buf_add_byte(&b, '"');
    send_event(t, &b);
}

static void give_credit(struct stream *t)
{
    if (t->exec == NULL || t->uncredited == 0 || silt_http_pending(t->request) >= SILT_HTTP_MARK)
        return;
    size_t n = t->uncredited;
    t->uncredited = 0;
    silt_exec_credit(t->exec, n);
}

static void on_drain(struct silt_http_request *r)
{
    give_credit(r->owner);
}

static void on_output(struct silt_exec_sink *sink, int stream, silt_slice bytes)
{
    struct stream *t = silt_container_of(sink, struct stream, sink);
    begin(t, 0);
    t->uncredited += bytes.len;
    send_output(t, stream, bytes, false);
    give_credit(t);
}

static void answer_background(struct stream *t, int32_t pid)
{
    silt_auto_buf b;
    char id[64], random[7];
    silt_id_random(random, 6);
    (void)snprintf(id, sizeof(id), "proc_%lld_%s", (long long)silt_clock_wall_ms(), random);
    silt_buf_init(&b, EVENT_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("processId"));
    silt_json_string(&b, silt_slice_of(id));
    silt_json_key(&b, SILT_LIT("pid"));
    silt_json_i64(&b, pid);
    silt_json_key(&b, SILT_LIT("command"));
    silt_json_string(&b, t->command.request.command);
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_exec_leave(t->exec);
    silt_api_answer(let_go(t), 200, &b);
    free_stream(t);
}

static void on_started(struct silt_exec_sink *sink, int32_t pid)
{
    struct stream *t = silt_container_of(sink, struct stream, sink);
    if (t->detached)
        answer_background(t, pid);
    else
        begin(t, pid);
}

static void remark(struct stream *t, const struct silt_agent_end *end)
{
    char text[PATH_MAX + 64];
    if (end->flags & SILT_END_NO_CWD)
        (void)snprintf(text, sizeof(text), "Failed to change directory to '%.*s'",
                       (int)t->command.request.cwd.len, t->command.request.cwd.data);
    else if (end->flags & SILT_END_TIMEOUT)
        (void)snprintf(text, sizeof(text), "Command timed out after %ums\n", t->command.request.timeout_ms);
    else
        return;
    send_output(t, 2, silt_slice_of(text), true);
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *end)
{
    struct stream *t = silt_container_of(sink, struct stream, sink);
    t->exec = NULL;
    if (!t->begun && (end->flags & SILT_END_SHELL)) { /* the session's shell had ended before */
        silt_command_refuse_shell(let_go(t), &t->command, t->sandbox, end);
        free_stream(t);
        return;
    }
    begin(t, 0);
    send_output(t, 1, (silt_slice){NULL, 0}, true);
    send_output(t, 2, (silt_slice){NULL, 0}, true);
    remark(t, end);
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    open_event(&b, "complete");
    silt_json_key(&b, SILT_LIT("exitCode"));
    silt_json_i64(&b, end->flags & SILT_END_TIMEOUT ? 124 : end->code >= 0 ? end->code : 1);
    silt_command_cause(&b, t->sandbox, end);
    send_event(t, &b);
    silt_http_end(let_go(t));
    free_stream(t);
}

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    struct stream *t = silt_container_of(sink, struct stream, sink);
    t->exec = NULL;
    if (!t->begun) {
        silt_command_refuse_failed(let_go(t), &t->command, SILT_API_STREAM_START, e);
        free_stream(t);
        return;
    }
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    open_event(&b, "error");
    silt_json_key(&b, SILT_LIT("error"));
    silt_json_string(&b, silt_slice_of(e->text));
    silt_json_key(&b, SILT_LIT("data"));
    silt_json_string(&b, silt_slice_of(e->text));
    send_event(t, &b);
    silt_http_end(let_go(t));
    free_stream(t);
}

static void run(struct silt_call *c)
{
    struct silt_command *m = c->own;
    struct silt_session *session = NULL;
    struct silt_error e;
    m->request.mode = SILT_EXEC_PLAIN;
    if (!m->choice.plain) {
        m->request.mode = SILT_EXEC_BACKGROUND;
        session = silt_choice_session(c, &m->choice, m->request.cwd, &e);
        if (session == NULL) {
            silt_command_refuse_failed(c->request, m, SILT_API_STREAM_START, &e);
            return;
        }
    }
    struct stream *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    *t = (struct stream){
        .sink = {.started = on_started, .output = on_output, .ended = on_ended, .failed = on_failed},
        .request = c->request,
        .command = *m,
        .sandbox = c->sandbox,
        .keepalive = {.on_time = on_keepalive},
        .escape = {{.drop_nul = true}, {.drop_nul = true}},
        .detached = m->background,
    };
    silt_sandbox_hold(t->sandbox);
    c->request->owner = t;
    c->request->on_gone = on_gone;
    c->request->on_drain = on_drain;
    if (silt_exec_start(t->sandbox, session, &t->command.request, &t->sink, &t->exec, &e) < 0)
        on_failed(&t->sink, &e);
}

void silt_api_start_background(struct silt_call *c, struct silt_command *m)
{
    c->own = m;
    silt_call_use(c, run);
}

static void parse(struct silt_call *c)
{
    struct silt_command *m = silt_arena_alloc(c->request->arena, sizeof(*m));
    if (m == NULL)
        abort();
    if (!silt_command_read(c, m))
        return;
    m->background = false;
    if (m->blank) {
        silt_api_refuse(c->request, SILT_API_INVALID_COMMAND, (silt_slice){NULL, 0},
                        "command: is required and must not be blank");
        return;
    }
    if (m->choice.blank) {
        struct silt_error e;
        (void)silt_fail(&e, SILT_INVALID, "a session id cannot be blank");
        silt_command_refuse_failed(c->request, m, SILT_API_STREAM_START, &e);
        return;
    }
    c->own = m;
    silt_call_use(c, run);
}

SILT_HANDLER(silt_api_execute_stream)
{
    struct silt_call *c = silt_call_new(r, args[0]);
    if (c == NULL)
        return;
    c->parsed = parse;
    silt_call_read(c, false);
}
