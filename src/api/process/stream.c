/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a process as events: stored output, new output, then its end. A reader that falls
 * behind gets a gap event; the process never waits for it. */
#include "api/process/process.h"
#include "api/core/sse.h"
#include "base/base64.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { EVENT_MAX = 1 << 20 }; /* one record with every byte escaped, and as base64 */

struct stream {
    struct silt_log_follower_sink sink;
    struct silt_log_follower *follow;
    struct silt_process *process; /* borrowed: followed */
    struct silt_sse sse;
    struct silt_json_escape escape[2];
    uint64_t cursor;
    bool native;
    bool from_tail;
};

void silt_process_time(struct silt_buf *b, int64_t time_ms)
{
    const int64_t most = 253402300799000; /* the last second of the year 9999 */
    silt_json_key(b, SILT_LIT("timestamp"));
    silt_api_time(b, time_ms >= 0 && time_ms <= most ? time_ms : silt_clock_wall_ms());
}

static void add_process(struct silt_buf *b, const struct stream *t)
{
    silt_json_key(b, SILT_LIT("processId"));
    silt_json_string(b, silt_slice_of(t->process->row.id));
}

static void send_event(struct stream *t, struct silt_buf *b, int64_t time_ms)
{
    silt_process_time(b, time_ms);
    silt_json_key(b, SILT_LIT("cursor"));
    silt_json_u64(b, t->cursor);
    silt_sse_send(&t->sse, b);
}

static struct silt_http_request *let_go(struct stream *t)
{
    struct silt_http_request *r = silt_sse_fini(&t->sse);
    free(t);
    return r;
}

static void on_gone(struct silt_http_request *r)
{
    struct stream *t = r->owner;
    silt_log_follower_stop(t->follow);
    (void)let_go(t);
}

static void on_drain(struct silt_http_request *r)
{
    struct stream *t = r->owner;
    silt_log_follower_resume(t->follow);
}

static bool is_full(struct silt_log_follower_sink *sink)
{
    struct stream *t = silt_outer(sink, struct stream, sink);
    return silt_http_pending(t->sse.request) >= SILT_HTTP_MARK;
}

static void on_gap(struct silt_log_follower_sink *sink, uint64_t bytes, enum silt_gap why,
                   uint64_t cursor)
{
    struct stream *t = silt_outer(sink, struct stream, sink);
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    t->cursor = cursor;
    silt_sse_open(&b, "gap");
    silt_json_key(&b, SILT_LIT("droppedBytes"));
    silt_json_u64(&b, bytes);
    silt_json_key(&b, SILT_LIT("data"));
    silt_json_string(&b, SILT_LIT(""));
    add_process(&b, t);
    if (why == SILT_GAP_EXPIRED) {
        silt_json_key(&b, SILT_LIT("expired"));
        silt_json_bool(&b, true);
    }
    send_event(t, &b, silt_clock_wall_ms());
}

static void on_opened(struct silt_log_follower_sink *sink, const struct silt_log_head *head)
{
    struct stream *t = silt_outer(sink, struct stream, sink);
    const struct silt_process_row *row = &t->process->row;
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    t->cursor = t->from_tail ? head->tail : t->cursor;
    silt_sse_begin(&t->sse);
    if (silt_api_is_head(t->sse.request)) {
        silt_log_follower_stop(t->follow);
        silt_http_end(let_go(t));
        return;
    }
    silt_sse_open(&b, "process_info");
    add_process(&b, t);
    silt_json_key(&b, SILT_LIT("command"));
    silt_json_string(&b, silt_slice_of(row->command != NULL ? row->command : ""));
    silt_json_key(&b, SILT_LIT("status"));
    silt_json_string(&b, silt_slice_of(silt_process_status_name(row->status)));
    silt_json_key(&b, SILT_LIT("data"));
    silt_json_string(&b, SILT_LIT(""));
    send_event(t, &b, silt_clock_wall_ms());
    if (t->from_tail && head->tail > 0)
        on_gap(sink, head->dropped[0] + head->dropped[1], SILT_GAP_OVERWRITTEN, head->tail);
}

static void add_base64(struct silt_buf *b, silt_slice bytes)
{
    struct silt_base64 x = {0};
    silt_json_key(b, SILT_LIT("base64"));
    silt_buf_add_byte(b, '"');
    silt_base64_encode(&x, b, bytes);
    silt_base64_encode_end(&x, b);
    silt_buf_add_byte(b, '"');
}

bool silt_process_output(struct silt_buf *b, struct silt_json_escape *x,
                         const struct silt_log_reader_piece *piece, bool bytes, bool end)
{
    silt_sse_open(b, piece->stream == SILT_LOG_STDOUT ? "stdout" : "stderr");
    silt_json_key(b, SILT_LIT("data"));
    silt_buf_add_byte(b, '"');
    size_t before = b->len;
    bool raw = bytes
               && (x->part_len > 0
                   || !silt_slice_is_utf8(piece->bytes)); /* `data` cannot represent the bytes */
    silt_json_escape(x, b, piece->bytes);
    if (end)
        silt_json_escape_end(x, b);
    if (b->len == before && !raw)
        return false;
    silt_buf_add_byte(b, '"');
    if (raw)
        add_base64(b, piece->bytes);
    return true;
}

/* `end` also sends the rest of an incomplete character. */
static void send_output(struct stream *t, const struct silt_log_reader_piece *piece, bool end)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    if (!silt_process_output(&b, &t->escape[piece->stream - 1], piece, t->native, end))
        return;
    add_process(&b, t);
    send_event(t, &b, piece->time_ms);
}

static void on_output(struct silt_log_follower_sink *sink,
                      const struct silt_log_reader_piece *piece)
{
    struct stream *t = silt_outer(sink, struct stream, sink);
    t->cursor = piece->after;
    send_output(t, piece, false);
}

static void send_exit(struct stream *t)
{
    const struct silt_process_row *row = &t->process->row;
    char text[96];
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "exit");
    add_process(&b, t);
    if (row->exit_code >= 0) {
        silt_json_key(&b, SILT_LIT("exitCode"));
        silt_json_i64(&b, row->exit_code);
        (void)snprintf(text, sizeof(text), "Process %s with exit code %d",
                       silt_process_status_name(row->status), row->exit_code);
    } else {
        (void)snprintf(text, sizeof(text), "Process ended without an exit code (%s)", row->cause);
    }
    silt_json_key(&b, SILT_LIT("data"));
    silt_json_string(&b, silt_slice_of(text));
    silt_json_key(&b, SILT_LIT("status"));
    silt_json_string(&b, silt_slice_of(silt_process_status_name(row->status)));
    if (row->cause[0] != 0) {
        silt_json_key(&b, SILT_LIT("cause"));
        silt_json_string(&b, silt_slice_of(row->cause));
    }
    send_event(t, &b, row->ended_ms);
}

static void on_over(struct silt_log_follower_sink *sink, uint64_t cursor)
{
    struct stream *t = silt_outer(sink, struct stream, sink);
    for (int i = SILT_LOG_STDOUT; i <= SILT_LOG_STDERR; i++) {
        struct silt_log_reader_piece rest = {.stream = (enum silt_log_stream)i,
                                             .time_ms = t->process->row.ended_ms};
        send_output(t, &rest, true);
    }
    t->cursor = cursor;
    send_exit(t);
    silt_http_end(let_go(t));
}

static void on_failed(struct silt_log_follower_sink *sink, const struct silt_error *e)
{
    struct stream *t = silt_outer(sink, struct stream, sink);
    bool begun = t->sse.begun;
    struct silt_http_request *r = let_go(t);
    if (begun)
        silt_http_cut(r);
    else if (e->code == SILT_INVALID)
        silt_api_refuse_field(r, "cursor", "no record of this log begins there");
    else
        silt_api_refuse_error(r, e);
}

bool silt_cursor_read(struct silt_call *c, struct silt_log_follower_options *o)
{
    struct silt_error e;
    silt_slice text = silt_query(c->request, SILT_LIT("cursor"));
    o->from_tail = text.data == NULL;
    if (text.data == NULL || silt_slice_to_u64(text, 0, INT64_MAX, &o->cursor, &e) == 0)
        return true;
    silt_api_refuse_field(c->request, "cursor", "must be a number that an event or a log told");
    return false;
}

static void stream(struct silt_call *c)
{
    struct silt_log_follower_options o = {0};
    if (!silt_cursor_read(c, &o))
        return;
    struct stream *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    t->sink = (struct silt_log_follower_sink){.opened = on_opened,
                                              .output = on_output,
                                              .gap = on_gap,
                                              .full = is_full,
                                              .over = on_over,
                                              .failed = on_failed};
    t->process = c->process;
    t->cursor = o.cursor;
    t->from_tail = o.from_tail;
    t->native = c->kind->native;
    t->escape[0].drop_nul = t->escape[1].drop_nul = !t->native;
    silt_sse_init(&t->sse, c->api->loop, c->request);
    c->request->owner = t;
    c->request->on_gone = on_gone;
    c->request->on_drain = on_drain;
    t->follow = silt_log_follower_start(t->process, &o, &t->sink);
}

static const struct silt_call_kind stream_call = {
    .sandbox = SILT_CALL_LOOKS, .choose = silt_process_choose, .run = stream};
static const struct silt_call_kind v1_stream_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .choose = silt_process_choose, .run = stream};

SILT_HANDLER(silt_api_process_stream)
{
    silt_process_call(r, args, &stream_call);
}

SILT_HANDLER(silt_api_v1_process_stream)
{
    silt_process_call(r, args, &v1_stream_call);
}
