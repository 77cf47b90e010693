/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/execute: runs a command to its end, then answers with all of its output, byte for
 * byte. */
#include "api/process/command.h"
#include "api/process/client_env.h"
#include "api/process/spool.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/core/start_frame.h"

#include <stdio.h>
#include <stdlib.h>

/*   RUNNING --ended--> SETTLING --stored--> ANSWERING --last byte--> (gone)  */
enum state { RUNNING, SETTLING, ANSWERING };
enum part { PART_STDOUT = 1, PART_STDERR = 2, PART_OVER = 3 };

struct collect {
    struct silt_exec_sink exec_sink;
    struct silt_spool_sink spool_sink;
    struct silt_http_request *request; /* until on_gone */
    struct silt_command command;       /* slices live with the request */
    struct silt_sandbox *sandbox;      /* borrowed, held by the exec and by us */
    struct silt_exec *exec;            /* NULL when it has ended */
    struct silt_spool *spool;
    enum state state;
    size_t uncredited;
    struct silt_agent_end end;
    int64_t started_ms, ended_ms;
    enum silt_api_code refusal; /* SILT_API_CODE_MAX: a normal answer */
    struct silt_error error;    /* of the refusal */
    enum part part;
    uint64_t at; /* in the part */
    struct silt_json_escape escape;
    bool reading;
};

static void free_collect(struct collect *k)
{
    silt_spool_free(k->spool);
    silt_sandbox_release(k->sandbox);
    free(k);
}

/* The request is answered (or refused) by the caller right after this. */
static struct silt_http_request *let_go(struct collect *k)
{
    struct silt_http_request *r = k->request;
    r->on_gone = NULL;
    r->on_drain = NULL;
    return r;
}

static void on_gone(struct silt_http_request *r)
{
    struct collect *k = r->owner;
    if (k->exec != NULL)
        silt_exec_leave(k->exec); /* the command runs on */
    free_collect(k);
}

static int exit_code(const struct collect *k)
{
    if (k->end.flags & SILT_END_TIMEOUT)
        return 124; /* sessionless: as timeout(1) says it */
    return k->end.code;
}

static void add_prefix(struct collect *k, struct silt_buf *b)
{
    if (k->refusal != SILT_API_CODE_MAX) {
        silt_api_envelope(b, k->refusal, silt_slice_of(k->error.text));
        silt_json_open(b, '{');
        silt_json_key(b, SILT_LIT("command"));
        silt_json_string(b, k->command.request.command);
        if (k->refusal == SILT_API_NO_SPACE) {
            silt_json_key(b, SILT_LIT("cause"));
            silt_json_string(b, SILT_LIT("disk"));
        }
    } else {
        silt_json_open(b, '{');
        if (!k->command.native)
            silt_json_add_bool(b, "success", exit_code(k) == 0);
        silt_json_add_i64(b, "exitCode", exit_code(k));
    }
    silt_json_key(b, SILT_LIT("stdout"));
    silt_buf_add_byte(b, '"');
}

/* What we add to the command's own stderr. */
static void add_remark(struct collect *k, struct silt_buf *b)
{
    silt_auto_buf plain;
    silt_buf_init(&plain, PATH_MAX + 64);
    if (k->refusal != SILT_API_CODE_MAX)
        return;
    if (k->end.flags & SILT_END_NO_CWD)
        silt_buf_addf(&plain, "Failed to change directory to '%.*s'",
                      (int)k->command.request.cwd.len, k->command.request.cwd.data);
    else if (k->end.flags & SILT_END_TIMEOUT)
        silt_buf_addf(&plain, "%sCommand timed out after %ums",
                      silt_spool_size(k->spool, PART_STDERR) > 0 ? "\n" : "",
                      k->command.request.timeout_ms);
    struct silt_json_escape x = {.drop_nul = true};
    silt_json_escape(&x, b, silt_buf_slice(&plain));
    silt_json_escape_end(&x, b);
}

static void add_suffix(struct collect *k, struct silt_buf *b)
{
    add_remark(k, b);
    silt_buf_add_byte(b, '"');
    if (k->refusal != SILT_API_CODE_MAX) {
        silt_json_close(b, '}');
        silt_api_envelope_end(b, k->refusal);
        return;
    }
    if (k->command.native) {
        silt_json_key(b, SILT_LIT("startedAt"));
        silt_api_time(b, silt_clock_wall_ms() - (silt_clock_ms() - k->started_ms));
        silt_json_add_i64(b, "durationMs", k->ended_ms - k->started_ms);
    } else {
        silt_json_add_slice(b, "command", k->command.request.command);
        silt_json_add_i64(b, "duration", k->ended_ms - k->started_ms);
        silt_api_timestamp(b);
    }
    if (k->command.choice.given)
        silt_json_add_slice(b, "sessionId", k->command.choice.name);
    silt_command_notice(b, k->sandbox, &k->command);
    if (k->end.flags & (SILT_END_OOM | SILT_END_TIMEOUT | SILT_END_PIDS | SILT_END_TCP)) {
        silt_json_key(b, SILT_LIT("death"));
        silt_json_open(b, '{');
        silt_command_cause(b, k->sandbox, &k->end);
        silt_json_close(b, '}');
    }
    silt_json_close(b, '}');
}

static void add_between(struct silt_buf *b)
{
    silt_buf_add_byte(b, '"');
    silt_json_key(b, SILT_LIT("stderr"));
    silt_buf_add_byte(b, '"');
}

static int status_of(const struct collect *k)
{
    return k->refusal == SILT_API_CODE_MAX ? 200 : silt_api_status(k->refusal);
}

static void answer_from_memory(struct collect *k)
{
    silt_auto_buf b;
    silt_buf_init(&b, (size_t)SILT_COMMAND_MAX * 7 + (16 << 20));
    add_prefix(k, &b);
    struct silt_json_escape x = {.drop_nul = true};
    silt_json_escape(&x, &b, silt_spool_memory(k->spool, PART_STDOUT));
    silt_json_escape_end(&x, &b);
    add_between(&b);
    silt_json_escape(&x, &b, silt_spool_memory(k->spool, PART_STDERR));
    silt_json_escape_end(&x, &b);
    add_suffix(k, &b);
    int status = status_of(k);
    silt_api_answer(let_go(k), status, &b);
    free_collect(k);
}

/* A large answer leaves in pieces, as fast as the client takes them. */
static void read_on(struct collect *k)
{
    if (k->reading || silt_http_pending(k->request) >= SILT_HTTP_MARK)
        return;
    k->reading = true;
    silt_spool_read(k->spool, (int)k->part, k->at);
}

static void on_drain(struct silt_http_request *r)
{
    struct collect *k = r->owner;
    if (k->state == ANSWERING)
        read_on(k);
}

static void write_buf(struct collect *k, const struct silt_buf *b)
{
    if (b->len > 0)
        silt_http_write(k->request, silt_buf_slice(b));
}

static void finish_large(struct collect *k, struct silt_buf *b)
{
    add_suffix(k, b);
    write_buf(k, b);
    silt_http_end(let_go(k));
    free_collect(k);
}

static void on_piece(struct silt_spool_sink *sink, silt_slice bytes)
{
    struct collect *k = silt_outer(sink, struct collect, spool_sink);
    uint64_t left = silt_spool_size(k->spool, (int)k->part) - k->at;
    k->reading = false;
    if (bytes.len == 0
        && left > 0) { /* the file became unreadable: the answer cannot be finished */
        silt_http_cut(let_go(k));
        free_collect(k);
        return;
    }
    silt_auto_buf b;
    silt_buf_init(&b, (size_t)SILT_COMMAND_MAX * 7 + (16 << 20));
    silt_json_escape(&k->escape, &b, bytes);
    k->at += bytes.len;
    if (k->at >= silt_spool_size(k->spool, (int)k->part)) {
        silt_json_escape_end(&k->escape, &b);
        k->at = 0;
        k->part++;
        if (k->part == PART_OVER) {
            finish_large(k, &b);
            return;
        }
        add_between(&b);
    }
    write_buf(k, &b);
    read_on(k);
}

static void answer(struct collect *k)
{
    k->state = ANSWERING;
    if (silt_spool_in_memory(k->spool)) {
        answer_from_memory(k);
        return;
    }
    silt_auto_buf b;
    silt_buf_init(&b, (size_t)SILT_COMMAND_MAX * 7 + (16 << 20));
    add_prefix(k, &b);
    k->part = PART_STDOUT;
    k->escape = (struct silt_json_escape){.drop_nul = true};
    k->request->on_drain = on_drain;
    silt_http_begin(k->request, status_of(k), SILT_LIT("application/json"), (silt_slice){NULL, 0});
    write_buf(k, &b);
    read_on(k);
}

static void on_settled(struct silt_spool_sink *sink, const struct silt_error *e)
{
    struct collect *k = silt_outer(sink, struct collect, spool_sink);
    if (e != NULL) {
        /* No room for the output: the caller gets what there is; the command runs on, unread. */
        k->refusal = e->code == SILT_NO_SPACE ? SILT_API_NO_SPACE : silt_api_code_of(e);
        k->error = *e;
        if (k->exec != NULL)
            silt_exec_leave(k->exec);
        k->exec = NULL;
    }
    answer(k);
}

static void on_stored(struct silt_spool_sink *sink, size_t n)
{
    struct collect *k = silt_outer(sink, struct collect, spool_sink);
    size_t credit = n < k->uncredited ? n : k->uncredited;
    k->uncredited -= credit;
    if (k->exec != NULL && credit > 0)
        silt_exec_credit(k->exec, credit);
}

static void on_output(struct silt_exec_sink *sink, int stream, silt_slice bytes)
{
    struct collect *k = silt_outer(sink, struct collect, exec_sink);
    k->uncredited += bytes.len;
    silt_spool_add(k->spool, stream, bytes);
}

static void refuse_timeout(struct collect *k)
{
    silt_auto_buf b;
    char text[64];
    struct silt_http_request *r = let_go(k);
    uint32_t ms = k->command.request.timeout_ms;
    (void)snprintf(text, sizeof(text), "Command timeout after %ums", ms);
    silt_buf_init(&b, (size_t)SILT_COMMAND_MAX * 7);
    silt_command_context(&b, &k->command, silt_slice_of(text));
    silt_command_cause(&b, k->sandbox, &k->end);
    silt_json_key(&b, SILT_LIT("timeoutMs"));
    silt_json_u64(&b, ms);
    silt_json_key(&b, SILT_LIT("shellRestarted"));
    silt_json_bool(&b, (k->end.flags & SILT_END_RESTARTED) != 0);
    silt_json_close(&b, '}');
    silt_slice command = k->command.request.command, session = k->command.choice.name;
    silt_api_refuse(r, SILT_API_COMMAND_FAILED, silt_buf_slice(&b),
                    "Failed to execute command '%.*s' in session '%.*s': %s",
                    (int)(command.len < 512 ? command.len : 512), command.data, (int)session.len,
                    session.data, text);
    free_collect(k);
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *end)
{
    struct collect *k = silt_outer(sink, struct collect, exec_sink);
    bool plain = k->command.choice.plain;
    k->exec = NULL;
    k->end = *end;
    if (!plain && (end->flags & SILT_END_TIMEOUT)) {
        refuse_timeout(k);
        return;
    }
    if (!plain && (end->flags & SILT_END_SHELL)) {
        silt_command_refuse_shell(let_go(k), &k->command, k->sandbox, end);
        free_collect(k);
        return;
    }
    k->ended_ms = silt_clock_ms();
    k->state = SETTLING;
    silt_spool_end(k->spool);
}

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    struct collect *k = silt_outer(sink, struct collect, exec_sink);
    k->exec = NULL;
    silt_command_refuse_failed(let_go(k), &k->command, SILT_API_COMMAND_FAILED, e);
    free_collect(k);
}

/* A blank command in a session: nothing to run, nothing to wait for. */
static void answer_blank(struct silt_call *c, const struct silt_command *m)
{
    silt_auto_buf b;
    silt_buf_init(&b, (size_t)SILT_COMMAND_MAX * 7);
    silt_json_raw(&b, SILT_LIT("{\"success\":true,\"exitCode\":0,\"stdout\":\"\",\"stderr\":\"\""));
    silt_json_key(&b, SILT_LIT("command"));
    silt_json_string(&b, m->request.command);
    silt_json_key(&b, SILT_LIT("duration"));
    silt_json_i64(&b, 0);
    silt_api_timestamp(&b);
    if (m->choice.given) {
        silt_json_key(&b, SILT_LIT("sessionId"));
        silt_json_string(&b, m->choice.name);
    }
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

/* Of commands that bring none: their session's, else what the variable says, which an image or a
 * sandbox may set. */
static uint32_t usual_timeout(const struct silt_sandbox *s, const struct silt_session *session)
{
    struct silt_error e;
    uint64_t ms = 0;
    if (session->timeout_ms > 0)
        return session->timeout_ms;
    return silt_slice_to_u64(silt_env_given(s, SILT_LIT("COMMAND_TIMEOUT_MS")), 0, INT32_MAX, &ms,
                             &e)
                   == 0
               ? (uint32_t)ms
               : 0;
}

static void start(struct silt_call *c, const struct silt_command *m)
{
    struct silt_error e;
    struct collect *k = calloc(1, sizeof(*k));
    if (k == NULL)
        abort();
    *k = (struct collect){
        .exec_sink = {.output = on_output, .ended = on_ended, .failed = on_failed},
        .spool_sink = {.stored = on_stored, .settled = on_settled, .piece = on_piece},
        .request = c->request,
        .command = *m,
        .sandbox = c->sandbox,
        .refusal = SILT_API_CODE_MAX,
        .started_ms = silt_clock_ms(),
    };
    silt_sandbox_hold(k->sandbox);
    k->spool = silt_spool_new(k->sandbox, &k->spool_sink);
    c->request->owner = k;
    c->request->on_gone = on_gone;
    if (c->session != NULL && k->command.request.timeout_ms == 0)
        k->command.request.timeout_ms = usual_timeout(c->sandbox, c->session);
    if (k->command.request.record.len == 0)
        k->command.request.record = k->command.request.command;
    silt_auto_fd input = -1;
    if (silt_command_feed(m, &k->command.request, &input, &e) < 0
        || silt_exec_start(k->sandbox, c->session, &k->command.request, &k->exec_sink, &k->exec, &e)
               < 0)
        on_failed(&k->exec_sink, &e);
}

void silt_command_collect(struct silt_call *c)
{
    const struct silt_command *m = c->own;
    if (m->blank && c->session != NULL && c->session->state != SILT_SESSION_DEAD)
        answer_blank(c, m);
    else
        start(c, m);
}

static bool choose(struct silt_call *c)
{
    const struct silt_command *m = c->own;
    if (!m->choice.plain)
        silt_export_note(c, m->request.command);
    return silt_command_choose(c);
}

static bool parse(struct silt_call *c)
{
    struct silt_command *m = silt_arena_alloc(c->request->arena, sizeof(*m));
    if (m == NULL)
        abort();
    if (!silt_command_read(c, m))
        return false;
    if (m->request.command.data == NULL) {
        silt_api_refuse_field(c->request, "command", "is required");
        return false;
    }
    if (m->choice.blank) {
        struct silt_error e;
        (void)silt_fail(&e, SILT_INVALID, "a session id cannot be blank");
        silt_command_refuse_failed(c->request, m, SILT_API_COMMAND_FAILED, &e);
        return false;
    }
    if (m->background && m->blank) {
        silt_api_refuse(c->request, SILT_API_INVALID_COMMAND, (silt_slice){NULL, 0},
                        "command: must not be blank");
        return false;
    }
    if (m->background)
        return silt_process_parse_background(c, m);
    m->foreground = true;
    c->own = m;
    return true;
}

static const struct silt_call_kind execute_call = {
    .body = SILT_BODY_REQUIRED, .parse = parse, .choose = choose, .run = silt_command_collect};

SILT_HANDLER(silt_api_execute)
{
    silt_call_begin(r, args, &execute_call);
}
