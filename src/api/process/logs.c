/* SPDX-License-Identifier: Apache-2.0 */
/* GET …/logs: the stored output of a process, in one response sent piece by piece. Compatible
 * clients get JSON with stdout first, so the log is read twice; /v1 returns the bytes of one stream
 * or of both. */
#include "api/process/process.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE_MAX = 1 << 20 };

struct logs {
    struct silt_log_follower_sink sink;
    struct silt_log_follower *follow;
    struct silt_http_request *request; /* until on_gone */
    struct silt_process *process;      /* borrowed, held */
    unsigned streams;                  /* bit set of the streams sent in this pass */
    bool native;
    bool begun;
    bool truncated;
    uint64_t cursor; /* where the first pass ended */
    struct silt_json_escape escape;
};

enum { OUT = 1 << SILT_LOG_STDOUT, ERR = 1 << SILT_LOG_STDERR };

static struct silt_http_request *let_go(struct logs *t)
{
    struct silt_http_request *r = t->request;
    r->on_gone = NULL;
    r->on_drain = NULL;
    silt_process_release(t->process);
    free(t);
    return r;
}

static void on_gone(struct silt_http_request *r)
{
    struct logs *t = r->owner;
    silt_log_follower_stop(t->follow);
    (void)let_go(t);
}

static void on_drain(struct silt_http_request *r)
{
    struct logs *t = r->owner;
    silt_log_follower_resume(t->follow);
}

static bool is_full(struct silt_log_follower_sink *sink)
{
    struct logs *t = silt_outer(sink, struct logs, sink);
    return silt_http_pending(t->request) >= SILT_HTTP_MARK;
}

static void write_buf(struct logs *t, const struct silt_buf *b)
{
    if (b->len > 0)
        silt_http_write(t->request, silt_buf_slice(b));
}

static void tell_dropped(struct logs *t, struct silt_buf *b, uint64_t bytes)
{
    char line[64];
    int n = snprintf(line, sizeof(line), "[%llu bytes dropped]\n", (unsigned long long)bytes);
    t->truncated = true;
    silt_json_escape(&t->escape, b, (silt_slice){line, (size_t)n});
}

static void begin_native(struct logs *t, const struct silt_log_head *head)
{
    char fields[128];
    const struct silt_process_row *row = &t->process->row;
    bool remark = silt_process_is_over(t->process) && row->remark != NULL;
    uint64_t dropped =
        (t->streams & OUT ? head->dropped[0] : 0) + (t->streams & ERR ? head->dropped[1] : 0);
    (void)snprintf(fields, sizeof(fields), "X-Silt-Cursor: %llu\r\nX-Silt-Dropped: %llu\r\n",
                   (unsigned long long)(head->head + (remark ? SILT_LOG_FOLLOWER_REMARK : 0)),
                   (unsigned long long)dropped);
    silt_http_begin(t->request, 200, SILT_LIT("application/octet-stream"), silt_slice_of(fields));
}

static void on_opened(struct silt_log_follower_sink *sink, const struct silt_log_head *head)
{
    struct logs *t = silt_outer(sink, struct logs, sink);
    silt_auto_buf b;
    silt_buf_init(&b, PIECE_MAX);
    bool first = !t->begun;
    t->begun = true;
    if (t->native) {
        begin_native(t, head);
        return;
    }
    if (first) {
        silt_http_begin(t->request, 200, SILT_LIT("application/json"), (silt_slice){NULL, 0});
        silt_json_open(&b, '{');
        silt_json_key(&b, SILT_LIT("success"));
        silt_json_bool(&b, true);
        silt_json_key(&b, SILT_LIT("processId"));
        silt_json_string(&b, silt_slice_of(t->process->row.id));
        silt_json_key(&b, SILT_LIT("stdout"));
        silt_buf_add_byte(&b, '"');
    }
    uint64_t dropped = head->dropped[t->streams == OUT ? 0 : 1];
    if (dropped > 0)
        tell_dropped(t, &b, dropped);
    write_buf(t, &b);
}

static void on_output(struct silt_log_follower_sink *sink,
                      const struct silt_log_reader_piece *piece)
{
    struct logs *t = silt_outer(sink, struct logs, sink);
    if ((t->streams & 1U << piece->stream) == 0)
        return;
    if (t->native) {
        if (piece->bytes.len > 0)
            silt_http_write(t->request, piece->bytes);
        return;
    }
    silt_auto_buf b;
    silt_buf_init(&b, PIECE_MAX);
    silt_json_escape(&t->escape, &b, piece->bytes);
    write_buf(t, &b);
}

static void on_gap(struct silt_log_follower_sink *sink, uint64_t bytes, enum silt_gap why,
                   uint64_t cursor)
{
    struct logs *t = silt_outer(sink, struct logs, sink);
    (void)cursor;
    t->truncated = true;
    if (t->native || why == SILT_GAP_UNSTORED)
        return; /* bytes that were never stored are part of the number at the start of the response
                 */
    silt_auto_buf b;
    silt_buf_init(&b, PIECE_MAX);
    tell_dropped(t, &b, bytes);
    write_buf(t, &b);
}

static void read_stream(struct logs *t, const struct silt_log_follower_options *o, unsigned streams)
{
    t->streams = streams;
    t->escape = (struct silt_json_escape){.drop_nul = true};
    t->follow = silt_log_follower_start(t->process, o, &t->sink);
}

static void finish(struct logs *t)
{
    silt_auto_buf b;
    silt_buf_init(&b, PIECE_MAX);
    silt_json_escape_end(&t->escape, &b);
    silt_buf_add_byte(&b, '"');
    silt_api_timestamp(&b);
    if (t->truncated) {
        silt_json_key(&b, SILT_LIT("truncated"));
        silt_json_bool(&b, true);
    }
    silt_json_key(&b, SILT_LIT("cursor"));
    silt_json_u64(&b, t->cursor);
    silt_json_close(&b, '}');
    write_buf(t, &b);
    silt_http_end(let_go(t));
}

static void on_over(struct silt_log_follower_sink *sink, uint64_t cursor)
{
    struct logs *t = silt_outer(sink, struct logs, sink);
    if (t->native) {
        silt_http_end(let_go(t));
        return;
    }
    if (t->streams == ERR) {
        finish(t);
        return;
    }
    t->cursor = cursor;
    silt_auto_buf b;
    silt_buf_init(&b, PIECE_MAX);
    silt_json_escape_end(&t->escape, &b);
    silt_buf_add_byte(&b, '"');
    silt_json_key(&b, SILT_LIT("stderr"));
    silt_buf_add_byte(&b, '"');
    write_buf(t, &b);
    struct silt_log_follower_options o = {.from_tail = true, .snapshot = true, .until = cursor};
    read_stream(t, &o, ERR);
}

static void on_failed(struct silt_log_follower_sink *sink, const struct silt_error *e)
{
    struct logs *t = silt_outer(sink, struct logs, sink);
    bool begun = t->begun;
    struct silt_http_request *r = let_go(t);
    if (begun)
        silt_http_cut(r);
    else if (e->code == SILT_INVALID)
        silt_api_refuse_field(r, "cursor", "no record of this log begins there");
    else
        silt_api_refuse_error(r, e);
}

static struct logs *new_logs(struct silt_call *c)
{
    struct logs *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    t->sink = (struct silt_log_follower_sink){.opened = on_opened,
                                              .output = on_output,
                                              .gap = on_gap,
                                              .full = is_full,
                                              .over = on_over,
                                              .failed = on_failed};
    t->request = c->request;
    t->process = c->process;
    silt_process_hold(t->process);
    t->native = c->kind->native;
    c->request->owner = t;
    c->request->on_gone = on_gone;
    c->request->on_drain = on_drain;
    return t;
}

static void logs(struct silt_call *c)
{
    struct silt_log_follower_options o = {.from_tail = true, .snapshot = true};
    read_stream(new_logs(c), &o, OUT);
}

static const struct silt_call_kind logs_call = {
    .sandbox = SILT_CALL_LOOKS, .choose = silt_process_choose, .run = logs};

SILT_HANDLER(silt_api_process_logs)
{
    silt_process_call(r, args, &logs_call);
}

/* The /v1 route. */

static bool read_streams(struct silt_call *c, unsigned *ret)
{
    silt_slice name = silt_query(c->request, SILT_LIT("stream"));
    *ret = name.data == NULL                         ? OUT | ERR
           : silt_slice_eq(name, SILT_LIT("stdout")) ? OUT
           : silt_slice_eq(name, SILT_LIT("stderr")) ? ERR
                                                     : 0;
    if (*ret == 0)
        silt_api_refuse_field(c->request, "stream", "must be stdout or stderr");
    return *ret != 0;
}

static void raw_logs(struct silt_call *c)
{
    struct silt_log_follower_options o = {.snapshot = true};
    unsigned streams = 0;
    if (silt_cursor_read(c, &o) && read_streams(c, &streams))
        read_stream(new_logs(c), &o, streams);
}

static const struct silt_call_kind v1_logs_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .choose = silt_process_choose, .run = raw_logs};

SILT_HANDLER(silt_api_v1_process_logs)
{
    silt_process_call(r, args, &v1_logs_call);
}
