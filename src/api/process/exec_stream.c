/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/execute/stream: output as server-sent events, sent as it arrives. The command is a
 * process whose log is followed. It blocks when its reader is a whole log behind; once the reader
 * disconnects, it never does. */
#include "api/process/process.h"
#include "api/core/sse.h"
#include "base/clock.h"
#include "base/fd.h"

#include <stdlib.h>

enum { EVENT_MAX = SILT_COMMAND_MAX * 7 };

struct stream {
    struct silt_process_watch watch;
    struct silt_log_follower_sink sink;
    struct silt_log_follower *follow; /* set once it runs */
    struct silt_process *process;     /* borrowed: watched or followed */
    struct silt_sse sse;
    struct silt_command command;
    struct silt_sandbox *sandbox; /* borrowed, held */
    struct silt_json_escape escape[2];
    bool bytes; /* also send non-text output as base64 */
};

static struct silt_http_request *let_go(struct stream *t)
{
    struct silt_http_request *r = silt_sse_fini(&t->sse);
    silt_process_unwatch(&t->watch);
    silt_sandbox_release(t->sandbox);
    free(t);
    return r;
}

static void on_gone(struct silt_http_request *r)
{
    struct stream *t = r->owner;
    if (t->follow != NULL)
        silt_log_follower_stop(t->follow); /* the process keeps running, unread */
    (void)let_go(t);
}

static void send_event(struct stream *t, struct silt_buf *b, int64_t time_ms)
{
    silt_process_time(b, time_ms);
    silt_sse_send(&t->sse, b);
}

static void send_start(struct stream *t)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_begin(&t->sse);
    silt_sse_open(&b, "start");
    if (!t->command.native)
        silt_json_add_slice(&b, "command", t->command.request.command);
    if (t->process->row.pid > 0) {
        silt_json_key(&b, SILT_LIT("pid"));
        silt_json_i64(&b, t->process->row.pid);
    }
    if (t->command.choice.given) {
        silt_json_key(&b, SILT_LIT("sessionId"));
        silt_json_string(&b, t->command.choice.name);
    }
    silt_json_key(&b, SILT_LIT("processId"));
    silt_json_string(&b, silt_slice_of(t->process->row.id));
    silt_command_notice(&b, t->sandbox, &t->command);
    send_event(t, &b, silt_clock_wall_ms());
}

/* `end` also sends the rest of an incomplete character. */
static void send_output(struct stream *t, const struct silt_log_reader_piece *piece, bool end)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    if (!silt_process_output(&b, &t->escape[piece->stream - 1], piece, t->bytes, end))
        return;
    if (!end) {
        silt_json_key(&b, SILT_LIT("cursor"));
        silt_json_u64(&b, piece->after);
    }
    send_event(t, &b, piece->time_ms);
}

static void on_output(struct silt_log_follower_sink *sink,
                      const struct silt_log_reader_piece *piece)
{
    send_output(silt_outer(sink, struct stream, sink), piece, false);
}

/* Happens only when the disk is full: the process waits for us, so nothing is overwritten. */
static void on_gap(struct silt_log_follower_sink *sink, uint64_t bytes, enum silt_gap why,
                   uint64_t cursor)
{
    struct stream *t = silt_outer(sink, struct stream, sink);
    silt_auto_buf b;
    (void)why;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "gap");
    silt_json_key(&b, SILT_LIT("droppedBytes"));
    silt_json_u64(&b, bytes);
    silt_json_key(&b, SILT_LIT("data"));
    silt_json_string(&b, SILT_LIT(""));
    silt_json_key(&b, SILT_LIT("cursor"));
    silt_json_u64(&b, cursor);
    send_event(t, &b, silt_clock_wall_ms());
}

static bool is_full(struct silt_log_follower_sink *sink)
{
    struct stream *t = silt_outer(sink, struct stream, sink);
    return silt_http_pending(t->sse.request) >= SILT_HTTP_MARK;
}

static void on_drain(struct silt_http_request *r)
{
    struct stream *t = r->owner;
    if (t->follow != NULL)
        silt_log_follower_resume(t->follow);
}

static void send_complete(struct stream *t)
{
    const struct silt_process_row *row = &t->process->row;
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "complete");
    silt_json_key(&b, SILT_LIT("exitCode"));
    silt_json_i64(&b, row->exit_code >= 0 ? row->exit_code : 1);
    silt_command_cause(&b, t->sandbox, &t->process->end);
    send_event(t, &b, row->ended_ms);
}

static void send_error(struct stream *t, silt_slice text)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "error");
    silt_json_key(&b, SILT_LIT("error"));
    silt_json_string(&b, text);
    silt_json_key(&b, SILT_LIT("data"));
    silt_json_string(&b, text);
    send_event(t, &b, silt_clock_wall_ms());
}

static void on_over(struct silt_log_follower_sink *sink, uint64_t cursor)
{
    struct stream *t = silt_outer(sink, struct stream, sink);
    const struct silt_process *p = t->process;
    (void)cursor;
    for (int i = SILT_LOG_STDOUT; i <= SILT_LOG_STDERR; i++) {
        struct silt_log_reader_piece rest = {.stream = (enum silt_log_stream)i,
                                             .time_ms = p->row.ended_ms};
        send_output(t, &rest, true);
    }
    if (p->row.status == SILT_PROCESS_ERROR && !p->orphaned)
        send_error(t, silt_slice_of(t->sandbox->row.death.message));
    else
        send_complete(t);
    silt_http_end(let_go(t));
}

static void on_broken(struct silt_log_follower_sink *sink, const struct silt_error *e)
{
    struct stream *t = silt_outer(sink, struct stream, sink);
    t->follow = NULL;
    send_error(t, silt_slice_of(e->text));
    silt_http_end(let_go(t));
}

static void follow(struct stream *t)
{
    struct silt_log_follower_options o = {.hold = true};
    t->sink = (struct silt_log_follower_sink){
        .output = on_output, .gap = on_gap, .full = is_full, .over = on_over, .failed = on_broken};
    send_start(t);
    t->follow = silt_log_follower_start(t->process, &o, &t->sink);
}

static void on_event(struct silt_process_watch *w, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e)
{
    struct stream *t = silt_outer(w, struct stream, watch);
    struct silt_agent_end end = {.code = p->row.exit_code, .flags = SILT_END_SHELL};
    struct silt_command m = t->command;
    struct silt_sandbox *s = t->sandbox;
    t->process = p;
    switch (what) {
    case SILT_PROCESS_STARTED:
    case SILT_PROCESS_ENDED:
        follow(t);
        break;
    case SILT_PROCESS_NOT_STARTED:
        silt_process_refuse_start(let_go(t), &m, silt_slice_of(p->row.id), e);
        break;
    case SILT_PROCESS_NO_SHELL:
        silt_command_refuse_shell(let_go(t), &m, s, &end);
        break;
    }
}

void silt_command_stream(struct silt_call *c)
{
    const struct silt_command *m = c->own;
    bool text = !m->bytes;
    struct silt_error e;
    struct stream *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    *t = (struct stream){.watch = {.on_event = on_event},
                         .command = *m,
                         .sandbox = c->sandbox,
                         .bytes = m->bytes,
                         .escape = {{.drop_nul = text}, {.drop_nul = text}}};
    struct silt_process_request q = {.exec = m->request,
                                     .session = m->choice.plain ? SILT_LIT("") : m->choice.name};
    q.exec.flags |= SILT_START_HOLD;
    if (q.exec.record.len == 0)
        q.exec.record = q.exec.command;
    silt_list_init(&t->watch.link);
    silt_sandbox_hold(t->sandbox);
    silt_sse_init(&t->sse, c->api->loop, c->request);
    c->request->owner = t;
    c->request->on_gone = on_gone;
    c->request->on_drain = on_drain;
    silt_auto_fd input = -1;
    if (silt_command_feed(m, &q.exec, &input, &e) < 0
        || silt_process_start(t->sandbox, c->session, &q, &t->watch, &t->process, &e) < 0)
        silt_command_refuse_failed(let_go(t), m, SILT_API_STREAM_START, &e);
}

static bool parse(struct silt_call *c)
{
    struct silt_command *m = silt_arena_alloc(c->request->arena, sizeof(*m));
    bool input = false; /* its standard input is written with PUT …/processes/{id}/stdin */
    if (m == NULL)
        abort();
    c->own = m;
    if (!silt_command_read(c, m) || !silt_body_bool(c, "bytes", &m->bytes)
        || !silt_body_bool(c, "stdin", &input) || !silt_body_string(c, "user", &m->request.user))
        return false;
    if (!silt_command_user_is_good(m->request.user)) {
        silt_api_refuse_field(c->request, "user",
                              "must be a name, a number, or two numbers with a colon");
        return false;
    }
    m->request.flags |= input ? SILT_START_STDIN : 0U;
    return silt_command_is_whole(c, m);
}

static const struct silt_call_kind stream_call = {.body = SILT_BODY_REQUIRED,
                                                  .parse = parse,
                                                  .choose = silt_command_choose,
                                                  .run = silt_command_stream};

SILT_HANDLER(silt_api_execute_stream)
{
    silt_call_begin(r, args, &stream_call);
}
