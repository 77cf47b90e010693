/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a run of code once more, from a cursor on: kept ones, then new ones, up to its end.
 * For clients whose connection broke. A reader that does not read holds up the code, as the client
 * that started it does. */
#include "api/code/context.h"
#include "api/core/sse.h"
#include "sandbox/context/run_log.h"

#include <stdlib.h>

struct stream {
    struct silt_run_reader reader;
    struct silt_sse sse;
    struct silt_sandbox *sandbox; /* borrowed, held */
};

static struct silt_http_request *let_go(struct stream *t)
{
    struct silt_http_request *r = silt_sse_fini(&t->sse);
    silt_run_reader_leave(&t->reader);
    silt_sandbox_release(t->sandbox);
    free(t);
    return r;
}

static void send_gap(struct stream *t, uint64_t lost)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    silt_sse_open(&b, "gap");
    silt_json_add_u64(&b, "droppedEvents", lost);
    silt_json_add_u64(&b, "cursor", t->reader.next - 1);
    silt_sse_send(&t->sse, &b);
}

/* Sends what the client has room for. The stream is gone after its last event. */
static void feed(struct stream *t)
{
    silt_slice event;
    uint64_t lost;
    while (silt_http_pending(t->sse.request) < SILT_HTTP_MARK
           && silt_run_reader_next(&t->reader, &event, &lost)) {
        if (lost > 0)
            send_gap(t, lost);
        else
            silt_sse_send_whole(&t->sse, event);
    }
    if (silt_run_reader_is_done(&t->reader))
        silt_http_end(let_go(t));
}

static void on_more(struct silt_run_reader *r)
{
    feed(silt_outer(r, struct stream, reader));
}

static void on_drain(struct silt_http_request *r)
{
    struct stream *t = r->owner;
    struct silt_run_reader *reader = &t->reader;
    bool running = !silt_run_reader_is_ended(reader);
    feed(t);
    if (running)
        silt_run_reader_resume(reader);
}

static void on_gone(struct silt_http_request *r)
{
    (void)let_go(r->owner);
}

static bool read_cursor(struct silt_call *c, uint64_t *ret)
{
    struct silt_error e;
    silt_slice text = silt_query(c->request, SILT_LIT("cursor"));
    *ret = 0;
    if (text.data == NULL || silt_slice_to_u64(text, 0, INT64_MAX, ret, &e) == 0)
        return true;
    silt_api_refuse_field(c->request, "cursor", "must be the cursor of an event");
    return false;
}

static struct silt_run_log *find(struct silt_call *c)
{
    enum silt_language language;
    struct silt_context *x;
    struct silt_run_log *l = silt_run_log_find(c->sandbox, c->arg, c->arg2);
    if (l == NULL && silt_language_find(c->arg, &language)
        && (x = silt_context_default(c->sandbox, language)) != NULL)
        l = silt_run_log_find(c->sandbox, silt_slice_of(x->row.id), c->arg2);
    return l;
}

static void stream(struct silt_call *c)
{
    struct silt_error e;
    uint64_t cursor;
    if (!read_cursor(c, &cursor))
        return;
    struct silt_run_log *l = find(c);
    if (l == NULL) {
        silt_api_refuse(c->request, SILT_API_RUN_NOT_FOUND, (silt_slice){NULL, 0},
                        "Run %.*s not found in this context",
                        (int)(c->arg2.len < 128 ? c->arg2.len : 128), c->arg2.data);
        return;
    }
    struct stream *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    if (silt_run_reader_init(&t->reader, l, cursor, &e) < 0) {
        free(t);
        if (e.code == SILT_INVALID)
            silt_api_refuse_field(c->request, "cursor", e.text);
        else
            silt_api_refuse_error(c->request, &e);
        return;
    }
    t->reader.on_more = on_more;
    t->sandbox = c->sandbox;
    silt_sandbox_hold(t->sandbox);
    silt_sse_init(&t->sse, c->api->loop, c->request);
    c->request->owner = t;
    c->request->on_gone = on_gone;
    c->request->on_drain = on_drain;
    silt_sse_begin(&t->sse);
    if (silt_api_is_head(c->request))
        silt_http_end(let_go(t));
    else
        feed(t);
}

static const struct silt_call_kind stream_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .run = stream};

SILT_HANDLER(silt_api_v1_run_stream)
{
    silt_call_begin(r, args, &stream_call);
}
