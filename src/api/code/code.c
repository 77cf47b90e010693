/* SPDX-License-Identifier: Apache-2.0 */
/* Runs code in a context: output and results as events while it runs, or as one response at the
 * end. The code keeps running if the client disconnects. Below /v1 the events are also kept in the
 * run's log, where the client can go on reading them: run_stream.c. */
#include "api/code/context.h"
#include "api/core/sse.h"
#include "http/field.h"
#include "sandbox/context/run_log.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    EVENT_MAX = SILT_KERNEL_TOLD_MAX + (64 << 10),
    LARGE = 64 << 10,
    WHOLE_MAX = 64 << 20,      /* bytes of one complete response */
    ERROR_MAX = 2 << 20,       /* bytes of an error kept until its run ends, */
    ERROR_TEXT_MAX = 64 << 10, /* and of its name and its message, if it is longer */
};

/* Output and results of one complete response. */
struct whole {
    struct silt_buf logs[2]; /* pieces as JSON strings, comma-separated */
    struct silt_buf results;
    size_t counted; /* bytes of all three */
    bool cut;
};

struct job {
    struct silt_code_run_sink sink;
    struct silt_code_run *cell;
    struct silt_context *x;   /* borrowed; until the stream begins */
    struct silt_sse sse;      /* its request is NULL: the client has left */
    struct silt_run_log *log; /* borrowed; NULL: none */
    struct silt_run_log_owner owner;
    struct silt_sandbox *sandbox; /* borrowed, held */
    struct silt_json_escape escape[2];
    struct silt_buf error; /* members of the error, which is sent last; empty: none */
    struct whole *whole;   /* NULL: streams events */
    enum silt_language language;
    bool native;
    char context[SILT_CONTEXT_ID_SIZE];
};

struct request {
    silt_slice context, code, language;
    uint32_t timeout_ms;
    bool native, streamed, wants_input;
};

/* ---- errors, in the compatible and the /v1 form at once ---- */

static void refuse(struct silt_http_request *r, enum silt_api_code code, silt_slice details,
                   const char *text)
{
    silt_auto_buf b;
    silt_slice context = details.len > 0 ? details : SILT_LIT("{}");
    silt_buf_init(&b, 64 << 10);
    silt_api_envelope(&b, code, silt_slice_of(text));
    silt_json_raw(&b, context);
    silt_json_key(&b, SILT_LIT("error"));
    silt_json_string(&b, silt_slice_of(text));
    silt_json_key(&b, SILT_LIT("details"));
    silt_json_raw(&b, context);
    silt_api_envelope_end(&b, code);
    silt_api_answer(r, silt_api_status(code), &b);
}

static void add_member(struct silt_buf *b, const char *key, const char *text)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_string(b, silt_slice_of(text));
}

static void refuse_in(struct silt_http_request *r, enum silt_api_code code, const char *context,
                      const char *evalue, const char *text)
{
    silt_auto_buf b;
    silt_buf_init(&b, 16 << 10);
    silt_json_open(&b, '{');
    add_member(&b, "contextId", context);
    if (evalue != NULL)
        add_member(&b, "evalue", evalue);
    silt_json_close(&b, '}');
    refuse(r, code, silt_buf_slice(&b), text);
}

static void refuse_dead(struct silt_http_request *r, const struct silt_context *x)
{
    char text[320];
    silt_auto_buf b;
    silt_buf_init(&b, 16 << 10);
    (void)snprintf(text, sizeof(text), "Context %s is dead: %s. Recreate the context.", x->row.id,
                   x->death.message);
    silt_json_open(&b, '{');
    add_member(&b, "contextId", x->row.id);
    add_member(&b, "cause", x->death.cause);
    silt_json_close(&b, '}');
    refuse(r, SILT_API_INTERNAL, silt_buf_slice(&b), text);
}

/* ---- life of a job ---- */

/* NULL: the client has left. */
static struct silt_http_request *let_go(struct job *j)
{
    struct silt_http_request *r = j->sse.request != NULL ? silt_sse_fini(&j->sse) : NULL;
    if (j->log != NULL)
        silt_run_log_end(j->log);
    silt_buf_fini(&j->error);
    if (j->whole != NULL) {
        j->sandbox->answer_bytes -= j->whole->counted;
        j->sandbox->registry->answer_bytes -= j->whole->counted;
        silt_buf_fini(&j->whole->logs[0]);
        silt_buf_fini(&j->whole->logs[1]);
        silt_buf_fini(&j->whole->results);
    }
    silt_sandbox_release(j->sandbox);
    free(j->whole);
    free(j);
    return r;
}

static void forget(struct silt_run_log_owner *o)
{
    struct job *j = silt_outer(o, struct job, owner);
    silt_buf_fini(&j->error);
    free(j);
}

/* With a log the client may come back. */
static void on_gone(struct silt_http_request *r)
{
    struct job *j = r->owner;
    if (j->log != NULL) {
        (void)silt_sse_fini(&j->sse);
        j->sse.request = NULL;
        silt_run_log_leave(j->log);
        return;
    }
    silt_code_run_leave(j->cell);
    (void)let_go(j);
}

static void on_drain(struct silt_http_request *r)
{
    struct job *j = r->owner;
    silt_code_run_resume(j->cell);
}

static bool is_full(struct silt_code_run_sink *sink)
{
    struct job *j = silt_outer(sink, struct job, sink);
    if (j->whole != NULL)
        return false;
    return (j->sse.request != NULL && silt_http_pending(j->sse.request) >= SILT_HTTP_MARK)
           || (j->log != NULL && silt_run_log_is_behind(j->log));
}

/* ---- events ---- */

static void send_event(struct job *j, struct silt_buf *b)
{
    if (j->log == NULL) {
        silt_sse_send(&j->sse, b);
        return;
    }
    silt_json_add_u64(b, "cursor", silt_run_log_last(j->log) + 1);
    silt_json_close(b, '}');
    if (j->sse.request != NULL)
        silt_sse_send_raw(&j->sse, b);
    else
        silt_buf_add(b, SILT_LIT("\n\n"));
    silt_run_log_add(j->log, silt_buf_slice(b));
}

static void begin_stream(struct job *j)
{
    silt_auto_buf b = {0};
    if (j->sse.begun || j->whole != NULL)
        return;
    silt_sse_begin(&j->sse);
    if (!j->native)
        return;
    j->log = silt_run_log_new(j->x, j->cell, &j->owner);
    silt_buf_init(&b, 4096);
    silt_sse_open(&b, "start");
    silt_json_add_text(&b, "runId", silt_run_log_id(j->log));
    silt_json_add_text(&b, "contextId", j->context);
    silt_json_key(&b, SILT_LIT("timestamp"));
    silt_json_i64(&b, silt_clock_wall_ms());
    send_event(j, &b);
}

static void on_began(struct silt_code_run_sink *sink)
{
    begin_stream(silt_outer(sink, struct job, sink));
}

/* ---- output and results ---- */

/* Writes a piece as a JSON string; false if it contains no complete character. `end` also writes
 * the rest of an incomplete character. */
static bool add_piece(struct job *j, struct silt_buf *b, int stream, silt_slice bytes, bool end)
{
    struct silt_json_escape *x = &j->escape[stream - 1];
    silt_buf_add_byte(b, '"');
    size_t before = b->len;
    silt_json_escape(x, b, bytes);
    if (end)
        silt_json_escape_end(x, b);
    bool any = b->len > before;
    silt_buf_add_byte(b, '"');
    return any;
}

/* Keeps what was added to `b` since `before` if it fits; otherwise marks the response as
 * truncated. */
static void keep(struct job *j, struct silt_buf *b, size_t before)
{
    struct silt_sandbox *s = j->sandbox;
    size_t more = b->len - before;
    if (b->broken || s->answer_bytes + more > SILT_ANSWERS_EACH_MAX
        || s->registry->answer_bytes + more > SILT_ANSWERS_MAX) {
        j->whole->cut = true;
        b->len = before;
        b->broken = false;
        return;
    }
    s->answer_bytes += more;
    s->registry->answer_bytes += more;
    j->whole->counted += more;
}

static void keep_output(struct job *j, int stream, silt_slice bytes, bool end)
{
    struct silt_buf *b = &j->whole->logs[stream - 1];
    size_t before = b->len;
    if (before > 0)
        silt_buf_add_byte(b, ',');
    if (add_piece(j, b, stream, bytes, end) || b->broken)
        keep(j, b, before);
    else
        b->len = before;
}

static void tell_output(struct job *j, int stream, silt_slice bytes, bool end)
{
    silt_auto_buf b = {0};
    if (j->whole != NULL) {
        keep_output(j, stream, bytes, end);
        return;
    }
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, stream == 1 ? "stdout" : "stderr");
    silt_json_key(&b, SILT_LIT("text"));
    if (!add_piece(j, &b, stream, bytes, end))
        return;
    silt_json_key(&b, SILT_LIT("timestamp"));
    silt_json_i64(&b, silt_clock_wall_ms());
    send_event(j, &b);
}

static void on_output(struct silt_code_run_sink *sink, int stream, silt_slice bytes)
{
    tell_output(silt_outer(sink, struct job, sink), stream, bytes, false);
}

static void add_result_rest(struct silt_buf *b, const struct silt_kernel_said *said)
{
    silt_json_key(b, SILT_LIT("metadata"));
    silt_json_raw(b, SILT_LIT("{}"));
    silt_json_key(b, SILT_LIT("isMainResult"));
    silt_json_bool(b, said->main);
}

/* Large results without a log are copied only once. */
static void tell_result(struct job *j, const struct silt_kernel_said *said)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "result");
    if (said->told.len > 0)
        silt_buf_add_byte(&b, ',');
    if (j->log != NULL || said->told.len < LARGE) {
        silt_buf_add(&b, said->told);
    } else {
        silt_http_write(j->sse.request, silt_buf_slice(&b));
        silt_http_write(j->sse.request, said->told);
        silt_buf_clear(&b);
        silt_buf_add_byte(&b, ',');
    }
    add_result_rest(&b, said);
    send_event(j, &b);
}

static void on_result(struct silt_code_run_sink *sink, const struct silt_kernel_said *said)
{
    struct job *j = silt_outer(sink, struct job, sink);
    if (j->whole == NULL) {
        tell_result(j, said);
        return;
    }
    struct silt_buf *all = &j->whole->results;
    size_t before = all->len;
    silt_json_open(all, '{');
    silt_buf_add(all, said->told);
    add_result_rest(all, said);
    silt_json_close(all, '}');
    keep(j, all, before);
}

static void add_error_head(struct silt_buf *b, silt_slice name, silt_slice value)
{
    silt_json_key(b, SILT_LIT("ename"));
    silt_json_string(b, name);
    silt_json_key(b, SILT_LIT("evalue"));
    silt_json_string(b, value);
    silt_json_key(b, SILT_LIT("traceback"));
}

static void add_error(struct silt_buf *b, silt_slice name, silt_slice value)
{
    add_error_head(b, name, value);
    silt_json_raw(b, SILT_LIT("[]"));
}

static silt_slice begin_of(silt_slice s)
{
    return s.len <= ERROR_TEXT_MAX ? s : (silt_slice){s.data, ERROR_TEXT_MAX};
}

/* Our kernels truncate errors that would be this long. */
static void add_long_error(struct silt_buf *b, const struct silt_kernel_said *said)
{
    add_error_head(b, begin_of(said->name), begin_of(said->value));
    silt_json_raw(b, SILT_LIT("[\"[the error was too long: the rest of it is left out]\"]"));
}

/* The error is sent last, after pending output: kept until the run ends, if it ever does. */
static void on_error(struct silt_code_run_sink *sink, const struct silt_kernel_said *said)
{
    struct job *j = silt_outer(sink, struct job, sink);
    if (j->error.len > 0)
        return;
    silt_buf_add_byte(&j->error, '{');
    if (said->told.len <= ERROR_MAX)
        silt_buf_add(&j->error, said->told);
    else
        add_long_error(&j->error, said);
}

static void on_asked(struct silt_code_run_sink *sink, const struct silt_kernel_said *said)
{
    struct job *j = silt_outer(sink, struct job, sink);
    silt_auto_buf b = {0};
    if (j->log != NULL && !silt_run_log_is_read(j->log)) {
        (void)silt_code_run_answer(j->cell, (silt_slice){NULL, 0}); /* no client can answer */
        return;
    }
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "input");
    silt_json_key(&b, SILT_LIT("prompt"));
    silt_json_string(&b, said->value);
    silt_json_key(&b, SILT_LIT("password"));
    silt_json_bool(&b, said->password);
    add_member(&b, "contextId", j->context);
    send_event(j, &b);
}

/* Adds the cause if the run was ended from outside. */
static void explain(struct job *j, const struct silt_code_run_end *end)
{
    char text[128];
    unsigned long long limit = (unsigned long long)end->limit;
    if (end->cause == SILT_CODE_RUN_FINE && end->death == NULL)
        return;
    silt_buf_clear(&j->error);
    silt_buf_add_byte(&j->error, '{');
    if (end->cause == SILT_CODE_RUN_TIMEOUT) {
        (void)snprintf(text, sizeof(text), "Execution timed out after %llu ms", limit);
        add_error(&j->error, SILT_LIT("TimeoutError"), silt_slice_of(text));
    } else if (end->cause == SILT_CODE_RUN_FLOOD) {
        (void)snprintf(text, sizeof(text), "Output was cut off: a run may print at most %llu bytes",
                       limit);
        add_error(&j->error, SILT_LIT("OutputLimitError"), silt_slice_of(text));
    } else {
        add_error(&j->error, SILT_LIT("ContextTerminated"), silt_slice_of(end->death->message));
    }
    if (end->death == NULL)
        return;
    silt_json_key(&j->error, SILT_LIT("contextTerminated"));
    silt_json_bool(&j->error, true);
    add_member(&j->error, "cause", end->death->cause);
    if (end->death->exit_code >= 0) {
        silt_json_key(&j->error, SILT_LIT("exitCode"));
        silt_json_i64(&j->error, end->death->exit_code);
    }
    if (end->death->signal > 0) {
        silt_json_key(&j->error, SILT_LIT("signal"));
        silt_json_i64(&j->error, end->death->signal);
    }
}

static void tell_end(struct job *j, const struct silt_code_run_end *end)
{
    silt_auto_buf b;
    bool failed = j->error.len > 0;
    begin_stream(j);
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, failed ? "error" : "execution_complete");
    if (failed) {
        silt_buf_add_byte(&b, ',');
        silt_buf_add(&b, (silt_slice){j->error.data + 1, j->error.len - 1});
    }
    silt_json_add_u64(&b, j->native ? "executionCount" : "execution_count", end->count);
    send_event(j, &b);
}

static void end_stream(struct job *j)
{
    struct silt_http_request *r = let_go(j);
    if (r != NULL)
        silt_http_end(r);
}

static void add_logs(struct silt_buf *b, const struct whole *w)
{
    static const char *const names[2] = {"stdout", "stderr"};
    silt_json_key(b, SILT_LIT("logs"));
    silt_json_open(b, '{');
    for (int i = 0; i < 2; i++) {
        silt_json_key(b, silt_slice_of(names[i]));
        silt_json_open(b, '[');
        silt_buf_add(b, silt_buf_slice(&w->logs[i]));
        silt_json_close(b, ']');
    }
    silt_json_close(b, '}');
}

static void answer_whole(struct job *j, struct silt_buf *b, const struct silt_code_run_end *end)
{
    silt_json_open(b, '{');
    add_member(b, "contextId", j->context);
    silt_json_key(b, SILT_LIT("executionCount"));
    silt_json_u64(b, end->count);
    add_logs(b, j->whole);
    silt_json_key(b, SILT_LIT("results"));
    silt_json_open(b, '[');
    silt_buf_add(b, silt_buf_slice(&j->whole->results));
    silt_json_close(b, ']');
    silt_json_key(b, SILT_LIT("error"));
    if (j->error.len > 0) {
        silt_json_raw(b, silt_buf_slice(&j->error));
        silt_json_close(b, '}');
    } else {
        silt_json_null(b);
    }
    silt_json_key(b, SILT_LIT("truncated"));
    silt_json_bool(b, j->whole->cut);
    silt_json_close(b, '}');
}

static void on_ended(struct silt_code_run_sink *sink, const struct silt_code_run_end *end)
{
    struct job *j = silt_outer(sink, struct job, sink);
    silt_auto_buf b = {0};
    tell_output(j, 1, (silt_slice){NULL, 0}, true);
    tell_output(j, 2, (silt_slice){NULL, 0}, true);
    explain(j, end);
    if (j->whole == NULL) {
        tell_end(j, end);
        end_stream(j);
        return;
    }
    silt_buf_init(&b, 4 * (size_t)WHOLE_MAX);
    answer_whole(j, &b, end);
    silt_api_answer(let_go(j), 200, &b);
}

static void on_failed(struct silt_code_run_sink *sink, const struct silt_error *e,
                      const struct silt_death *why)
{
    struct job *j = silt_outer(sink, struct job, sink);
    struct silt_death death = {.cause = "crash", .exit_code = -1};
    struct silt_code_run_end end = {.death = why != NULL ? why : &death};
    (void)snprintf(death.message, sizeof(death.message), "%.*s", (int)sizeof(death.message) - 1,
                   e->text);
    if (j->sse.begun) {
        explain(j, &end);
        tell_end(j, &end);
        end_stream(j);
        return;
    }
    enum silt_language language = j->language;
    silt_context_refuse(let_go(j), language, e);
}

/* ---- the request ---- */

static struct job *make_job(struct silt_call *c, const struct request *q, struct silt_context *x)
{
    struct job *j = calloc(1, sizeof(*j));
    if (j == NULL)
        abort();
    j->sink = (struct silt_code_run_sink){.began = on_began,
                                          .output = on_output,
                                          .result = on_result,
                                          .error = on_error,
                                          .asked = q->wants_input ? on_asked : NULL,
                                          .full = is_full,
                                          .ended = on_ended,
                                          .failed = on_failed};
    j->owner = (struct silt_run_log_owner){.forget = forget};
    j->x = x;
    j->sandbox = c->sandbox;
    j->language = x->row.language;
    j->native = q->native;
    memcpy(j->context, x->row.id, sizeof(j->context));
    silt_buf_init(&j->error, EVENT_MAX);
    silt_sse_init(&j->sse, c->api->loop, c->request);
    if (!q->streamed) {
        j->whole = calloc(1, sizeof(*j->whole));
        if (j->whole == NULL)
            abort();
        silt_buf_init(&j->whole->logs[0], WHOLE_MAX);
        silt_buf_init(&j->whole->logs[1], WHOLE_MAX);
        silt_buf_init(&j->whole->results, WHOLE_MAX);
    }
    return j;
}

static void begin(struct silt_call *c, const struct request *q, struct silt_context *x)
{
    struct silt_error e;
    bool ready = x->state != SILT_CONTEXT_STARTING;
    struct job *j = make_job(c, q, x);
    silt_sandbox_hold(c->sandbox);
    c->request->owner = j;
    c->request->on_gone = on_gone;
    c->request->on_drain = on_drain;
    if (silt_code_run_start(x, q->code, q->timeout_ms, &j->sink, &j->cell, &e) < 0)
        silt_api_refuse_error(let_go(j), &e);
    else if (ready)
        begin_stream(j); /* the run may have to wait for its turn */
}

/* The language's default context, created if needed. NULL: already answered with an error. */
static struct silt_context *take_default(struct silt_call *c, enum silt_language language)
{
    struct silt_context_options o = {.language = language, .is_default = true};
    struct silt_context *x = silt_context_default(c->sandbox, language);
    struct silt_error e;
    if (x != NULL || silt_context_new(c->sandbox, &o, NULL, &x, &e) == 0)
        return x;
    silt_context_refuse(c->request, language, &e);
    return NULL;
}

static struct silt_context *find(struct silt_call *c, const struct request *q)
{
    enum silt_language language = SILT_PYTHON;
    bool named = q->language.len > 0;
    if (named && !silt_context_language(c, q->language, &language))
        return NULL;
    if (q->context.len == 0 || (q->native && silt_language_find(q->context, &language)))
        return take_default(c, language);
    struct silt_context *x = silt_context_find(c->sandbox, q->context);
    if (x == NULL) {
        char text[320];
        silt_auto_buf b;
        silt_slice id = {q->context.data, q->context.len < 256 ? q->context.len : 256};
        silt_buf_init(&b, 4096);
        silt_json_open(&b, '{');
        silt_json_key(&b, SILT_LIT("contextId"));
        silt_json_string(&b, id);
        silt_json_close(&b, '}');
        (void)snprintf(text, sizeof(text), "Context %.*s not found", (int)id.len, id.data);
        refuse(c->request, SILT_API_CONTEXT_NOT_FOUND, silt_buf_slice(&b), text);
        return NULL;
    }
    if (!named || language == x->row.language)
        return x;
    refuse_in(c->request, SILT_API_CODE_EXECUTION, x->row.id,
              "language differs from that of the context", "The context has another language");
    return NULL;
}

static void run(struct silt_call *c)
{
    const struct request *q = c->own;
    struct silt_context *x = find(c, q);
    if (x == NULL)
        return;
    if (x->state == SILT_CONTEXT_DEAD)
        refuse_dead(c->request, x);
    else
        begin(c, q, x);
}

static bool read_code(struct silt_call *c, struct request *q)
{
    if (!silt_body_string(c, "code", &q->code))
        return false;
    if (q->code.data == NULL) {
        silt_api_refuse_field(c->request, "code", "is missing");
        return false;
    }
    if (q->code.len > SILT_CODE_BYTES_MAX) {
        silt_api_refuse_field(c->request, "code", "is longer than 16 MiB");
        return false;
    }
    return silt_body_string(c, "language", &q->language);
}

static struct request *make_request(struct silt_call *c)
{
    struct request *q = silt_arena_alloc(c->request->arena, sizeof(*q));
    if (q == NULL)
        abort();
    *q = (struct request){.streamed = true};
    c->own = q;
    return q;
}

static bool parse(struct silt_call *c)
{
    struct request *q = make_request(c);
    return read_code(c, q) && silt_body_string(c, "context_id", &q->context)
           && silt_body_ms(c, "timeout_ms", &q->timeout_ms);
}

static bool parse_v1(struct silt_call *c)
{
    struct request *q = make_request(c);
    silt_slice accept = silt_http_field(c->request->head, SILT_LIT("accept"));
    q->native = true;
    q->streamed = silt_http_accepts(accept, SILT_LIT("text/event-stream"));
    q->context = c->arg;
    if (!read_code(c, q) || !silt_body_ms(c, "timeoutMs", &q->timeout_ms)
        || !silt_body_bool(c, "stdin", &q->wants_input))
        return false;
    if (q->wants_input && !q->streamed) {
        silt_api_refuse_field(c->request, "stdin",
                              "needs a stream of events: send Accept: text/event-stream");
        return false;
    }
    return true;
}

static const struct silt_call_kind code_call = {
    .body = SILT_BODY_REQUIRED, .parse = parse, .run = run};

SILT_HANDLER(silt_api_code)
{
    silt_call_begin(r, args, &code_call);
}

static const struct silt_call_kind v1_code_call = {
    .body = SILT_BODY_REQUIRED, .native = true, .parse = parse_v1, .run = run};

static bool parse_run(struct silt_call *c)
{
    c->arg = (silt_slice){NULL, 0}; /* the default context of the language */
    return parse_v1(c);
}

static const struct silt_call_kind v1_run_call = {
    .body = SILT_BODY_REQUIRED, .native = true, .parse = parse_run, .run = run};

SILT_HANDLER(silt_api_v1_run)
{
    silt_call_begin(r, args, &v1_run_call);
}

SILT_HANDLER(silt_api_v1_code)
{
    silt_call_begin(r, args, &v1_code_call);
}
