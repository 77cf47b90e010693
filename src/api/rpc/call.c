/* SPDX-License-Identifier: Apache-2.0 */
/* An RPC call, from its push to the release of its result. Each call runs as an internal request,
 * which may be answered before the client pulls the result. */
#include "api/rpc/rpc.h"
#include "api/rpc/text.h"
#include "base/clock.h"

#include <stdlib.h>

enum { TEXT_MAX = 96 << 20 };

static const char too_large[] =
    "The answer is larger than a connection holds now; ask for it as a stream";

static void free_call(struct silt_grave *g)
{
    struct silt_rpc_call *c = silt_outer(g, struct silt_rpc_call, grave);
    silt_buf_fini(&c->text);
    silt_buf_fini(&c->queue);
    free(c->refs);
    free(c);
}

static void enter(struct silt_rpc_call *c,
                  enum silt_rpc_state next) /* the only place that assigns it */
{
    c->state = next;
    if (next == SILT_RPC_ANSWERED)
        c->line->count--;
}

/* The only place that assigns it. */
void silt_rpc_call_end_source(struct silt_rpc_call *c, enum silt_rpc_source next)
{
    c->source = next;
}

bool silt_rpc_call_flows(const struct silt_rpc_call *c)
{
    enum silt_rpc_shape shape = c->method != NULL ? c->method->shape : SILT_RPC_VOID;
    return shape == SILT_RPC_FLOW || shape == SILT_RPC_FLOW_READY || shape == SILT_RPC_FLOW_LOGS
           || shape == SILT_RPC_FLOW_EXEC || shape == SILT_RPC_RAW;
}

static size_t own_bytes(const struct silt_rpc_call *c)
{
    return c->text.len + c->queue.len;
}

/* Takes it out of everything but its request. */
static void remove_call(struct silt_rpc_call *c)
{
    struct silt_loop *loop = c->line->api->loop;
    struct silt_rpc_wait *w;
    while ((w = silt_list_first(&c->waits, struct silt_rpc_wait, link)) != NULL)
        silt_rpc_wait_drop(w);
    if (c->client != SILT_RPC_RELEASED)
        silt_rpc_forget(c->line, &c->entry);
    silt_rpc_hold(c->line, -(ptrdiff_t)own_bytes(c));
    if (c->state != SILT_RPC_ANSWERED)
        c->line->count--;
    silt_list_remove(&c->link);
    silt_loop_cancel(loop, &c->leave);
    silt_loop_cancel(loop, &c->quiet);
    silt_loop_bury(loop, &c->grave);
}

void silt_rpc_call_hang_up(struct silt_rpc_call *c)
{
    struct silt_http_internal *inner = c->inner;
    c->inner = NULL;
    remove_call(c);
    if (inner != NULL)
        silt_http_internal_leave(inner);
}

void silt_rpc_call_leave(struct silt_rpc_call *c)
{
    struct silt_http_internal *inner = c->inner;
    c->inner = NULL;
    if (inner != NULL)
        silt_http_internal_leave(inner);
}

static bool is_finished(const struct silt_rpc_call *c)
{
    return c->state == SILT_RPC_ANSWERED && c->client == SILT_RPC_RELEASED && c->inner == NULL;
}

static void on_leave(struct silt_timer *t)
{
    struct silt_rpc_call *c = silt_outer(t, struct silt_rpc_call, leave);
    silt_rpc_call_leave(c);
    if (c->state == SILT_RPC_FLOWING && c->pipe < SILT_RPC_PIPE_OPEN)
        silt_rpc_call_fail(c, "INTERNAL_ERROR", too_large);
    else if (is_finished(c))
        remove_call(c);
}

void silt_rpc_call_leave_soon(struct silt_rpc_call *c)
{
    silt_loop_after(c->line->api->loop, &c->leave, 0);
}

void silt_rpc_call_keep(struct silt_rpc_call *c, silt_slice bytes)
{
    silt_buf_add(&c->text, bytes);
    silt_rpc_hold(c->line, (ptrdiff_t)bytes.len);
}

void silt_rpc_call_used(struct silt_rpc_call *c, size_t bytes)
{
    silt_buf_drop(&c->text, bytes);
    silt_rpc_hold(c->line, -(ptrdiff_t)bytes);
    if (c->text.len == 0)
        silt_buf_fini(&c->text);
}

static void let_go_refs(struct silt_rpc_call *c)
{
    for (size_t i = 0; i < c->ref_count; i++)
        silt_rpc_say_release(c->line, c->refs[i]);
    c->ref_count = 0;
}

/* ---- answers ---- */

/* A function of the client that was called and is not awaited any more. */
static void let_go_waits(struct silt_rpc_call *c)
{
    struct silt_rpc_wait *w;
    while ((w = silt_list_first(&c->waits, struct silt_rpc_wait, link)) != NULL) {
        if (w->what == SILT_RPC_CALLBACK)
            silt_rpc_say_release(c->line, w->id);
        silt_rpc_wait_drop(w);
    }
}

/* The only place where it ends to be under way. */
void silt_rpc_call_done(struct silt_rpc_call *c)
{
    let_go_waits(c);
    enter(c, SILT_RPC_ANSWERED);
    let_go_refs(c);
    if (is_finished(c))
        remove_call(c);
}

static void say_kept(struct silt_rpc_call *c)
{
    silt_rpc_say(c->line, &c->text);
    silt_rpc_call_used(c, c->text.len);
}

static void begin_answer(const struct silt_rpc_call *c, struct silt_buf *b, bool good)
{
    silt_buf_addf(b, "[\"%s\",%lld,", good ? "resolve" : "reject", (long long)c->entry.id);
}

static void drop_bytes(struct silt_rpc_call *c)
{
    silt_rpc_hold(c->line, -(ptrdiff_t)own_bytes(c));
    silt_buf_fini(&c->text);
    silt_buf_fini(&c->queue);
    c->text.len = c->queue.len = c->sent = 0;
}

/* Takes the frame, whose value begins at `at`. */
static void settle(struct silt_rpc_call *c, bool good, struct silt_buf *frame, size_t at)
{
    struct silt_rpc_upload *feed = c->feed;
    silt_buf_add_byte(frame, ']');
    silt_slice value = {frame->data + at, frame->broken ? 0 : frame->len - at - 1};
    c->feed = NULL;
    if (feed != NULL)
        silt_rpc_upload_fail(feed, good ? SILT_LIT("[\"error\",\"Error\",\"The stream is over.\"]")
                                        : value);
    drop_bytes(c);
    let_go_refs(c);
    if (c->client == SILT_RPC_PULLED) {
        silt_rpc_say(c->line, frame);
    } else if (c->client == SILT_RPC_UNPULLED) {
        c->text = *frame;
        *frame = (struct silt_buf){0};
        silt_rpc_hold(c->line, (ptrdiff_t)c->text.len);
    }
    silt_rpc_call_done(c);
}

void silt_rpc_call_settle(struct silt_rpc_call *c, bool good, silt_slice value)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_RPC_FRAME_ROOM + value.len);
    begin_answer(c, &b, good);
    size_t at = b.len;
    silt_buf_add(&b, value);
    settle(c, good, &b, at);
}

void silt_rpc_call_fail(struct silt_rpc_call *c, const char *code, const char *message)
{
    silt_auto_buf b;
    silt_buf_init(&b, 64 << 10);
    silt_rpc_error(&b, code, silt_slice_of(message), (silt_slice){NULL, 0});
    silt_rpc_call_settle(c, false, silt_buf_slice(&b));
}

/* A command that could not start is a stream with one event. */
static void flow_refusal(struct silt_rpc_call *c, silt_slice envelope)
{
    silt_auto_buf b;
    silt_slice message = SILT_LIT("\"\""), code = SILT_LIT("\"INTERNAL_ERROR\""),
               context = SILT_LIT("{}");
    char now[SILT_ISO_SIZE];
    (void)silt_rpc_member(envelope, SILT_LIT("message"), &message);
    (void)silt_rpc_member(envelope, SILT_LIT("code"), &code);
    (void)silt_rpc_member(envelope, SILT_LIT("context"), &context);
    silt_clock_iso(silt_clock_wall_ms(), now);
    silt_buf_init(&b, 2 * envelope.len + 1024);
    silt_buf_addf(&b,
                  "event: error\ndata: {\"type\":\"error\",\"timestamp\":\"%s\",\"error\":", now);
    silt_buf_add(&b, message);
    silt_buf_add(&b, SILT_LIT(",\"data\":"));
    silt_buf_add(&b, message);
    silt_buf_add(&b, SILT_LIT(",\"code\":"));
    silt_buf_add(&b, code);
    silt_buf_add(&b, SILT_LIT(",\"context\":"));
    silt_buf_add(&b, context);
    silt_buf_add(&b, SILT_LIT("}\n\n"));
    enter(c, SILT_RPC_FLOWING);
    c->body = SILT_RPC_BODY_EVENTS;
    silt_rpc_download_begin(c);
    silt_rpc_download_take(c, silt_buf_slice(&b));
    silt_rpc_download_end(c, true);
}

static void put_good(struct silt_rpc_call *c, struct silt_buf *b, silt_slice json)
{
    if (c->method->shape == SILT_RPC_PICK)
        silt_rpc_pick(b, json, c->method->fields, c->number);
    else if (c->method->shape == SILT_RPC_ONE)
        silt_rpc_pick_one(b, json, c->method->fields);
    else
        silt_buf_add(b, SILT_LIT("[\"undefined\"]"));
}

static void answer_json(struct silt_rpc_call *c, int status, silt_slice json)
{
    silt_auto_buf b = {0};
    bool good = status / 100 == 2;
    if (!good && c->method->shape == SILT_RPC_FLOW_EXEC) {
        flow_refusal(c, json);
        return;
    }
    silt_buf_init(&b, 2 * json.len + (64 << 10)); /* brackets are doubled */
    begin_answer(c, &b, good);
    size_t at = b.len;
    if (good)
        put_good(c, &b, json);
    else
        silt_rpc_refusal(&b, json);
    settle(c, good, &b, at);
}

/* ---- what the request says ---- */

static bool is_unseen_stream(const struct silt_rpc_call *c)
{
    return c->state == SILT_RPC_FLOWING && silt_rpc_call_flows(c) && c->pipe < SILT_RPC_PIPE_OPEN;
}

static struct silt_rpc_call *call_of(struct silt_http_internal_sink *s)
{
    return silt_outer(s, struct silt_rpc_call, sink);
}

static void on_reply(struct silt_http_internal_sink *s, int status, silt_slice type,
                     silt_slice body)
{
    struct silt_rpc_call *c = call_of(s);
    c->inner = NULL;
    if (!silt_slice_starts(type, SILT_LIT("application/json")))
        body = SILT_LIT("{}");
    if (silt_rpc_has_room(c->line, 0, body.len))
        answer_json(c, status, body);
    else
        silt_rpc_call_fail(c, "INTERNAL_ERROR", too_large);
}

/* What follows the stream in the answer. */
static void keep_file(struct silt_rpc_call *c, silt_slice type)
{
    silt_auto_buf b;
    char now[SILT_ISO_SIZE];
    uint64_t size = 0;
    (void)silt_http_internal_size(c->inner, &size);
    silt_clock_iso(silt_clock_wall_ms(), now);
    silt_buf_init(&b, 64 << 10);
    silt_buf_addf(&b, ",\"size\":%llu,\"mimeType\":", (unsigned long long)size);
    silt_json_string(&b, type);
    silt_buf_addf(&b, ",\"timestamp\":\"%s\"}", now);
    silt_rpc_call_keep(c, silt_buf_slice(&b));
}

static void on_begin(struct silt_http_internal_sink *s, int status, silt_slice type)
{
    struct silt_rpc_call *c = call_of(s);
    bool good = status / 100 == 2;
    c->status = status;
    c->body = silt_slice_starts(type, SILT_LIT("text/event-stream"))  ? SILT_RPC_BODY_EVENTS
              : silt_slice_starts(type, SILT_LIT("application/json")) ? SILT_RPC_BODY_JSON
                                                                      : SILT_RPC_BODY_BYTES;
    if (!good || (!silt_rpc_call_flows(c) && c->method->shape != SILT_RPC_CODE)) {
        drop_bytes(c);
        return;
    }
    enter(c, SILT_RPC_FLOWING);
    if (c->method->shape == SILT_RPC_RAW)
        keep_file(c, type);
    if (c->method->shape == SILT_RPC_CODE)
        return;
    if (c->client == SILT_RPC_RELEASED)
        silt_rpc_call_leave_soon(c); /* nobody will ever read it */
    else
        silt_rpc_download_begin(c);
}

static void on_write(struct silt_http_internal_sink *s, silt_slice bytes)
{
    struct silt_rpc_call *c = call_of(s);
    if (c->source != SILT_RPC_SOURCE_OPEN || c->state == SILT_RPC_ANSWERED
        || (is_unseen_stream(c) && c->client == SILT_RPC_RELEASED))
        return;
    if (!silt_rpc_has_room(c->line, own_bytes(c), bytes.len)) {
        silt_rpc_call_end_source(c, SILT_RPC_SOURCE_TOO_LARGE);
        if (c->state == SILT_RPC_FLOWING)
            silt_rpc_call_leave_soon(c);
        if (c->pipe >= SILT_RPC_PIPE_OPEN)
            silt_rpc_download_end(c, false);
        return;
    }
    if (c->state == SILT_RPC_FLOWING && silt_rpc_call_flows(c)) {
        silt_rpc_download_take(c, bytes);
        return;
    }
    silt_rpc_call_keep(c, bytes);
    if (c->state == SILT_RPC_FLOWING)
        silt_rpc_code_go_on(c);
}

static size_t pending(const struct silt_http_internal_sink *s)
{
    const struct silt_rpc_call *c = (const struct silt_rpc_call *)(const void *)s;
    _Static_assert(offsetof(struct silt_rpc_call, sink) == 0, "a cast leads from one to the other");
    return c->state == SILT_RPC_FLOWING
               ? silt_rpc_download_pending(c) + silt_socket_pending(&c->line->guest.socket)
               : 0;
}

static void end_text(struct silt_rpc_call *c, bool whole)
{
    silt_auto_buf all = {0};
    if (!whole || c->source == SILT_RPC_SOURCE_TOO_LARGE) {
        silt_rpc_call_fail(c, "INTERNAL_ERROR", whole ? too_large : "The answer broke off");
        return;
    }
    all = c->text; /* the text of the answer takes its place */
    silt_rpc_hold(c->line, -(ptrdiff_t)all.len);
    silt_buf_init(&c->text, TEXT_MAX);
    answer_json(c, c->status,
                c->body == SILT_RPC_BODY_JSON ? silt_buf_slice(&all) : SILT_LIT("{}"));
}

static void on_end(struct silt_http_internal_sink *s, bool whole)
{
    struct silt_rpc_call *c = call_of(s);
    c->inner = NULL;
    if (c->state == SILT_RPC_ANSWERED) {
        if (is_finished(c))
            remove_call(c);
    } else if (c->state == SILT_RPC_ASKED) {
        end_text(c, whole);
    } else if (silt_rpc_call_flows(c)) {
        silt_rpc_download_end(c, whole && c->source == SILT_RPC_SOURCE_OPEN);
    } else {
        if (c->source == SILT_RPC_SOURCE_OPEN)
            silt_rpc_call_end_source(c, whole ? SILT_RPC_SOURCE_WHOLE : SILT_RPC_SOURCE_BROKEN);
        silt_rpc_code_go_on(c);
    }
}

static void on_room(struct silt_http_internal_sink *s)
{
    struct silt_rpc_call *c = call_of(s);
    if (c->feed != NULL)
        silt_rpc_upload_flow(c->feed);
}

void silt_rpc_call_drain(struct silt_rpc_call *c)
{
    if (c->state == SILT_RPC_FLOWING && silt_rpc_call_flows(c))
        silt_rpc_download_pump(c);
    if (c->inner != NULL && silt_rpc_download_pending(c) < SILT_HTTP_MARK / 2
        && silt_socket_pending(&c->line->guest.socket) < SILT_HTTP_MARK)
        silt_http_internal_drain(c->inner);
}

/* ---- what the client says ---- */

void silt_rpc_call_pull(struct silt_rpc_call *c)
{
    if (c->client != SILT_RPC_UNPULLED)
        return;
    c->client = SILT_RPC_PULLED;
    if (c->state == SILT_RPC_ANSWERED)
        say_kept(c);
    else if (c->state == SILT_RPC_FLOWING && silt_rpc_call_flows(c))
        silt_rpc_download_begin(c);
}

/* What was asked goes on, but for a stream that nobody has seen. */
void silt_rpc_call_release(struct silt_rpc_call *c)
{
    silt_rpc_forget(c->line, &c->entry);
    c->client = SILT_RPC_RELEASED;
    if (is_unseen_stream(c)) {
        silt_rpc_call_leave(c);
        silt_rpc_call_done(c);
    } else if (is_finished(c)) {
        remove_call(c);
    }
}

struct silt_rpc_call *silt_rpc_call_new(struct silt_rpc *l)
{
    struct silt_rpc_call *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    c->sink = (struct silt_http_internal_sink){.reply = on_reply,
                                               .begin = on_begin,
                                               .write = on_write,
                                               .pending = pending,
                                               .end = on_end,
                                               .room = on_room};
    c->entry = (struct silt_rpc_entry){.id = ++l->arrived, .thing = SILT_RPC_CALL};
    c->line = l;
    c->leave.on_time = on_leave;
    c->quiet.on_time = silt_rpc_download_on_quiet;
    c->grave.free = free_call;
    silt_buf_init(&c->text, TEXT_MAX);
    silt_buf_init(&c->queue, TEXT_MAX);
    silt_list_init(&c->waits);
    silt_list_append(&l->calls, &c->link);
    silt_rpc_enter(l, &c->entry);
    l->count++;
    return c;
}
