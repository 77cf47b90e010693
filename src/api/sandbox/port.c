/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/port-watch: server-sent events until something inside answers on a port, for as long
 * as the client stays connected. POST /v1/…/ports/wait: the same as one response. */
#include "api/sandbox/port.h"
#include "api/core/sse.h"
#include "http/field.h"

#include <stdlib.h>

enum {
    EVENT_MAX = 4096,
    INTERVAL_MS = 500,
    INTERVAL_MIN_MS = 100,
    INTERVAL_MAX_MS = 10000,
    WAIT_MS = 30000, /* the default timeout of a single response */
    WAIT_MAX_MS = 600000,
};

/* ---- parameters ---- */

/* An integer within the bounds; may be absent. */
static bool read_number(struct silt_call *c, const char *name, int64_t min, int64_t max,
                        uint32_t *ret)
{
    const struct silt_json *v = silt_json_get(c->body, silt_slice_of(name));
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    int64_t n = -1;
    if (v->type == SILT_JSON_INT)
        n = v->integer;
    else if (v->type == SILT_JSON_DOUBLE && v->number >= 0 && v->number <= (double)UINT32_MAX)
        n = (int64_t)v->number;
    if ((v->type == SILT_JSON_DOUBLE && (double)n != v->number) || n < min || n > max) {
        silt_api_refuse_field(c->request, name, "must be a whole number in its bounds");
        return false;
    }
    *ret = (uint32_t)n;
    return true;
}

static bool read_interval(struct silt_call *c, uint32_t *ret)
{
    if (!silt_body_ms(c, c->kind->native ? "intervalMs" : "interval", ret))
        return false;
    *ret = *ret < INTERVAL_MIN_MS   ? INTERVAL_MIN_MS
           : *ret > INTERVAL_MAX_MS ? INTERVAL_MAX_MS
                                    : *ret;
    return true;
}

bool silt_port_ask_read(struct silt_call *c, struct silt_port_ask *ret)
{
    uint32_t port = 0;
    silt_slice mode = {NULL, 0};
    struct silt_port_request *q = &ret->request;
    *ret = (struct silt_port_ask){.request = {.status_min = 200,
                                              .status_max = 399,
                                              .interval_ms = INTERVAL_MS,
                                              .path = SILT_LIT("/")}};
    if (!read_number(c, "port", 1, UINT16_MAX, &port) || !silt_body_string(c, "mode", &mode)
        || !silt_body_string(c, "path", &q->path)
        || !read_number(c, "statusMin", 0, 999, &q->status_min)
        || !read_number(c, "statusMax", 0, 999, &q->status_max)
        || !read_interval(c, &q->interval_ms) || !silt_body_string(c, "processId", &ret->process))
        return false;
    if (port == 0 || q->path.len > SILT_WORKER_PATH_MAX) {
        silt_api_refuse_field(c->request, port == 0 ? "port" : "path",
                              port == 0 ? "is required" : "is longer than 4096 bytes");
        return false;
    }
    q->port = (uint16_t)port;
    q->http = !silt_slice_eq(mode, SILT_LIT("tcp"));
    return true;
}

/* ---- the stream ---- */

struct stream {
    struct silt_port_wait wait;
    struct silt_timer deadline; /* of a client that names one */
    struct silt_sse sse;
    struct silt_sandbox *sandbox; /* borrowed, held */
    uint16_t port;
};

static void free_stream(struct stream *t)
{
    silt_port_wait_leave(&t->wait);
    silt_loop_cancel(t->sse.loop, &t->deadline);
    silt_sandbox_release(t->sandbox);
    free(t);
}

static void on_gone(struct silt_http_request *r)
{
    struct stream *t = r->owner;
    (void)silt_sse_fini(&t->sse);
    free_stream(t);
}

static void on_halved(struct silt_http_request *r)
{
    struct stream *t = r->owner;
    silt_sse_probe(&t->sse);
}

static void open_event(const struct stream *t, struct silt_buf *b, const char *type)
{
    silt_buf_init(b, EVENT_MAX);
    silt_sse_open(b, type);
    silt_json_key(b, SILT_LIT("port"));
    silt_json_u64(b, t->port);
}

static void finish(struct stream *t, struct silt_buf *b)
{
    silt_sse_send(&t->sse, b);
    silt_http_end(silt_sse_fini(&t->sse));
    free_stream(t);
}

static void on_reached(struct silt_port_wait *w, uint32_t status)
{
    struct stream *t = silt_outer(w, struct stream, wait);
    silt_auto_buf b;
    open_event(t, &b, "ready");
    if (status > 0) {
        silt_json_key(&b, SILT_LIT("statusCode"));
        silt_json_u64(&b, status);
    }
    finish(t, &b);
}

static void on_exited(struct silt_port_wait *w, int32_t code)
{
    struct stream *t = silt_outer(w, struct stream, wait);
    silt_auto_buf b;
    open_event(t, &b, "process_exited");
    if (code >= 0) {
        silt_json_key(&b, SILT_LIT("exitCode"));
        silt_json_i64(&b, code);
    }
    finish(t, &b);
}

static void end_with_error(struct stream *t, const char *text)
{
    silt_auto_buf b;
    open_event(t, &b, "error");
    silt_json_key(&b, SILT_LIT("error"));
    silt_json_string(&b, silt_slice_of(text));
    finish(t, &b);
}

static void on_failed(struct silt_port_wait *w, const struct silt_error *e)
{
    end_with_error(silt_outer(w, struct stream, wait), e->text);
}

static void on_stream_late(struct silt_timer *t)
{
    end_with_error(silt_outer(t, struct stream, deadline), "The port was not reached in time");
}

static void begin(struct stream *t)
{
    silt_auto_buf b;
    open_event(t, &b, "watching");
    silt_sse_begin(&t->sse);
    silt_sse_send(&t->sse, &b);
}

static struct stream *new_stream(struct silt_call *c, const struct silt_port_ask *ask)
{
    struct stream *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    *t = (struct stream){
        .wait = {.reached = on_reached, .exited = on_exited, .failed = on_failed},
        .deadline = {.on_time = on_stream_late},
        .sandbox = c->sandbox,
        .port = ask->request.port,
    };
    silt_sse_init(&t->sse, c->api->loop, c->request);
    silt_sandbox_hold(t->sandbox);
    c->request->owner = t;
    c->request->on_gone = on_gone;
    c->request->on_halved = on_halved;
    return t;
}

static void run(struct silt_call *c)
{
    struct silt_port_ask *ask = c->own;
    struct silt_process *process = silt_process_find(c->sandbox, ask->process);
    struct silt_error e;
    struct stream *t = new_stream(c, ask);
    ask->request.process = process;
    if (ask->process.len > 0 && (process == NULL || silt_process_is_over(process))) {
        begin(t);
        if (process == NULL)
            end_with_error(t, "Process not found");
        else
            on_exited(&t->wait, process->row.exit_code);
        return;
    }
    if (silt_port_wait_start(&t->wait, c->sandbox, &ask->request, &e) < 0) {
        silt_api_refuse_error(silt_sse_fini(&t->sse), &e);
        free_stream(t);
        return;
    }
    begin(t);
    if (ask->timeout_ms > 0)
        silt_loop_after(c->api->loop, &t->deadline, ask->timeout_ms);
}

static bool parse(struct silt_call *c)
{
    struct silt_port_ask *ask = silt_arena_alloc(c->request->arena, sizeof(*ask));
    if (ask == NULL)
        abort();
    if (!silt_port_ask_read(c, ask)
        || (c->kind->native && !silt_body_ms(c, "timeoutMs", &ask->timeout_ms)))
        return false;
    c->own = ask;
    return true;
}

static const struct silt_call_kind watch_call = {
    .body = SILT_BODY_REQUIRED, .parse = parse, .run = run};

SILT_HANDLER(silt_api_port_watch)
{
    silt_call_begin(r, args, &watch_call);
}

/* ---- single response ---- */

struct answer {
    struct silt_port_wait wait;
    struct silt_http_request *request;
    struct silt_loop *loop;       /* borrowed */
    struct silt_sandbox *sandbox; /* borrowed, held */
    struct silt_timer deadline;
};

static struct silt_http_request *end_wait(struct answer *a)
{
    struct silt_http_request *r = a->request;
    r->on_gone = NULL;
    r->on_halved = NULL;
    silt_port_wait_leave(&a->wait);
    silt_loop_cancel(a->loop, &a->deadline);
    silt_sandbox_release(a->sandbox);
    free(a);
    return r;
}

static void on_waiter_gone(struct silt_http_request *r)
{
    (void)end_wait(r->owner);
}

static void answer(struct answer *a, bool reached, const char *key, int64_t value)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("reached"));
    silt_json_bool(&b, reached);
    if (key != NULL && silt_slice_eq(silt_slice_of(key), SILT_LIT("exitCode"))) {
        silt_json_key(&b, SILT_LIT("processExited"));
        silt_json_bool(&b, true);
    }
    if (key != NULL && value >= 0) {
        silt_json_key(&b, silt_slice_of(key));
        silt_json_i64(&b, value);
    }
    silt_json_close(&b, '}');
    silt_api_answer(end_wait(a), 200, &b);
}

static void on_answer_reached(struct silt_port_wait *w, uint32_t status)
{
    answer(silt_outer(w, struct answer, wait), true, status > 0 ? "statusCode" : NULL, status);
}

static void on_answer_exited(struct silt_port_wait *w, int32_t code)
{
    answer(silt_outer(w, struct answer, wait), false, "exitCode", code);
}

static void on_answer_failed(struct silt_port_wait *w, const struct silt_error *e)
{
    silt_api_refuse_error(end_wait(silt_outer(w, struct answer, wait)), e);
}

static void on_late(struct silt_timer *t)
{
    answer(silt_outer(t, struct answer, deadline), false, NULL, 0);
}

/* Most clients that half-close have left; one that has not is told that the port was not reached
 * yet. */
static void on_waiter_halved(struct silt_http_request *r)
{
    answer(r->owner, false, NULL, 0);
}

struct wait_ask {
    struct silt_port_ask port;
    uint32_t timeout_ms;
};

static void run_wait(struct silt_call *c)
{
    struct wait_ask *ask = c->own;
    struct silt_process *process = silt_process_find(c->sandbox, ask->port.process);
    struct silt_error e;
    if (ask->port.process.len > 0 && process == NULL) {
        silt_api_refuse(c->request, SILT_API_PROCESS_NOT_FOUND, (silt_slice){NULL, 0},
                        "Process not found");
        return;
    }
    struct answer *a = calloc(1, sizeof(*a));
    if (a == NULL)
        abort();
    *a = (struct answer){
        .wait = {.reached = on_answer_reached,
                 .exited = on_answer_exited,
                 .failed = on_answer_failed},
        .request = c->request,
        .loop = c->api->loop,
        .sandbox = c->sandbox,
        .deadline = {.on_time = on_late},
    };
    silt_sandbox_hold(a->sandbox);
    c->request->owner = a;
    c->request->on_gone = on_waiter_gone;
    c->request->on_halved = on_waiter_halved;
    ask->port.request.process = process;
    if (process != NULL && silt_process_is_over(process))
        on_answer_exited(&a->wait, process->row.exit_code);
    else if (silt_port_wait_start(&a->wait, c->sandbox, &ask->port.request, &e) < 0)
        on_answer_failed(&a->wait, &e);
    else
        silt_loop_after(a->loop, &a->deadline, ask->timeout_ms);
}

static const struct silt_call_kind native_watch_call = {
    .body = SILT_BODY_REQUIRED, .native = true, .parse = parse, .run = run};

static bool parse_wait(struct silt_call *c)
{
    struct wait_ask *ask = silt_arena_alloc(c->request->arena, sizeof(*ask));
    if (ask == NULL)
        abort();
    if (silt_http_accepts(silt_http_field(c->request->head, SILT_LIT("accept")),
                          SILT_LIT("text/event-stream"))) {
        c->kind = &native_watch_call;
        return parse(c);
    }
    ask->timeout_ms = WAIT_MS;
    if (!silt_port_ask_read(c, &ask->port) || !silt_body_ms(c, "timeoutMs", &ask->timeout_ms))
        return false;
    if (ask->timeout_ms > WAIT_MAX_MS)
        ask->timeout_ms = WAIT_MAX_MS;
    c->own = ask;
    return true;
}

static const struct silt_call_kind wait_call = {
    .body = SILT_BODY_REQUIRED, .native = true, .parse = parse_wait, .run = run_wait};

SILT_HANDLER(silt_api_port_wait)
{
    silt_call_begin(r, args, &wait_call);
}
