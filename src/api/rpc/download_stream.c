/* SPDX-License-Identifier: Apache-2.0 */
/* A stream to the client: writes of limited size, with a limited number unacknowledged. Only the
 * response to a write shows that the client stopped reading, so an idle stream writes something
 * from time to time. */
#include "api/rpc/rpc.h"
#include "api/rpc/text.h"
#include "base/base64.h"

enum {
    PIECE_MAX = 64 << 10, /* per write */
    WINDOW = 512 << 10,   /* unacknowledged bytes */
    WRITES_MAX = 64,      /* unacknowledged writes: small ones are merged meanwhile */
    QUIET_MS = 3000,
};

static void enter(struct silt_rpc_call *c,
                  enum silt_rpc_pipe next) /* the only place that assigns it */
{
    c->pipe = next;
}

size_t silt_rpc_download_pending(const struct silt_rpc_call *c)
{
    return c->text.len + c->queue.len - c->sent + c->flying;
}

/* ---- sending ---- */

/* Server-sent events are text: never splits a character. */
static silt_slice next_piece(const struct silt_rpc_call *c)
{
    silt_slice rest = {c->queue.data + c->sent, c->queue.len - c->sent};
    size_t n = rest.len < PIECE_MAX ? rest.len : PIECE_MAX;
    bool events = c->body == SILT_RPC_BODY_EVENTS;
    for (int i = 0;
         events && i < 3 && n < rest.len && n > 1 && ((unsigned char)rest.data[n] & 0xc0) == 0x80;
         i++)
        n--;
    return (silt_slice){rest.data, n};
}

static void say_write(struct silt_rpc_call *c, silt_slice bytes)
{
    silt_auto_buf b;
    struct silt_base64 x = {0};
    silt_buf_init(&b, SILT_RPC_FRAME_ROOM + bytes.len / 3 * 4 + 4);
    silt_buf_addf(&b, "[\"stream\",[\"pipeline\",%lld,[\"write\"],[[\"bytes\",\"",
                  (long long)c->pipe_id);
    silt_base64_encode(&x, &b, bytes);
    silt_base64_encode_end(&x, &b);
    while (b.len > 0 && b.data[b.len - 1] == '=')
        b.len--;
    silt_buf_add(&b, SILT_LIT("\"]]]]"));
    silt_rpc_say(c->line, &b);
    silt_rpc_wait_for(c, SILT_RPC_WRITE, bytes.len);
}

static void drop_sent(struct silt_rpc_call *c)
{
    if (c->sent < c->queue.len && (c->sent < (1 << 20) || c->sent < c->queue.len / 2))
        return; /* moves the remaining bytes rarely */
    silt_rpc_hold(c->line, -(ptrdiff_t)c->sent);
    silt_buf_drop(&c->queue, c->sent);
    c->sent = 0;
    if (c->queue.len == 0)
        silt_buf_fini(&c->queue);
}

static void say_end(struct silt_rpc_call *c)
{
    silt_auto_buf b;
    bool whole = c->source == SILT_RPC_SOURCE_WHOLE;
    silt_buf_init(&b, 1024);
    silt_buf_addf(&b, "[\"stream\",[\"pipeline\",%lld,[\"%s\"],[", (long long)c->pipe_id,
                  whole ? "close" : "abort");
    if (!whole)
        silt_rpc_error(&b, "INTERNAL_ERROR", SILT_LIT("The stream broke off"),
                       (silt_slice){NULL, 0});
    silt_buf_add(&b, SILT_LIT("]]]"));
    silt_rpc_say(c->line, &b);
    silt_rpc_wait_for(c, SILT_RPC_END, 0);
    enter(c, SILT_RPC_PIPE_CLOSING);
}

void silt_rpc_download_pump(struct silt_rpc_call *c)
{
    struct silt_rpc *l = c->line;
    if (c->pipe != SILT_RPC_PIPE_OPEN)
        return;
    while (c->queue.len > c->sent && c->flying < WINDOW && c->writes < WRITES_MAX
           && silt_socket_pending(&l->guest.socket) < SILT_HTTP_MARK) {
        silt_slice piece = next_piece(c);
        say_write(c, piece);
        c->sent += piece.len;
        c->flying += piece.len;
        c->writes++;
    }
    drop_sent(c);
    if (c->body == SILT_RPC_BODY_EVENTS)
        silt_loop_after(l->api->loop, &c->quiet, QUIET_MS);
    if (silt_rpc_call_source_has_ended(c) && c->queue.len == c->sent)
        say_end(c);
}

/* ---- opening ---- */

static void put_value(struct silt_rpc_call *c, struct silt_buf *b)
{
    bool raw = c->method->shape == SILT_RPC_RAW;
    silt_buf_addf(b, "%s[\"readable\",%lld]", raw ? "{\"success\":true,\"content\":" : "",
                  (long long)c->pipe_id);
    if (!raw)
        return;
    silt_buf_add(b, silt_buf_slice(&c->text));
    silt_rpc_call_used(c, c->text.len);
}

static void open_pipe(struct silt_rpc_call *c)
{
    struct silt_rpc *l = c->line;
    silt_auto_buf b;
    silt_buf_init(&b, c->text.len + SILT_RPC_FRAME_ROOM);
    silt_buf_add(&b, SILT_LIT("[\"pipe\"]"));
    silt_rpc_say(l, &b);
    silt_buf_clear(&b);
    c->pipe_id = ++l->asked;
    enter(c, SILT_RPC_PIPE_OPEN);
    silt_buf_addf(&b, "[\"resolve\",%lld,", (long long)c->entry.id);
    put_value(c, &b);
    silt_buf_add_byte(&b, ']');
    silt_rpc_say(l, &b);
    silt_rpc_download_pump(c);
}

void silt_rpc_download_begin(struct silt_rpc_call *c)
{
    if (c->pipe == SILT_RPC_PIPE_HELD && c->method->shape != SILT_RPC_FLOW_READY)
        enter(c, SILT_RPC_PIPE_READY);
    /* One that became too large before it was pulled is about to fail: nothing would end it. */
    if (c->pipe == SILT_RPC_PIPE_READY && c->client == SILT_RPC_PULLED
        && c->source != SILT_RPC_SOURCE_TOO_LARGE)
        open_pipe(c);
}

/* ---- data from the source ---- */

static void add(struct silt_rpc_call *c, silt_slice bytes)
{
    silt_buf_add(&c->queue, bytes);
    silt_rpc_hold(c->line, (ptrdiff_t)bytes.len);
}

/* The first event is an error, and no other will follow: rejects with its message. */
static void refuse_first(struct silt_rpc_call *c, silt_slice event)
{
    silt_auto_buf b;
    silt_slice json = event, text = SILT_LIT("\"The stream could not begin\"");
    const char *data = memmem(event.data, event.len, "\ndata: ", 7);
    silt_buf_init(&b, 2 * event.len + 1024);
    if (data != NULL)
        json = (silt_slice){data + 7, event.len - (size_t)(data + 7 - event.data)};
    (void)silt_rpc_member(json, SILT_LIT("error"), &text);
    silt_buf_add(&b, SILT_LIT("[\"error\",\"Error\","));
    silt_buf_add(&b, text);
    silt_buf_add(&b, SILT_LIT(",null,{\"code\":\"WATCH_START_ERROR\",\"details\":{}}]"));
    silt_rpc_call_leave_soon(c);
    silt_rpc_call_settle(c, false, silt_buf_slice(&b));
}

/* Comments do not count as events. */
static void look_at_first(struct silt_rpc_call *c)
{
    silt_slice all = silt_buf_slice(&c->queue);
    const char *end;
    while ((end = memmem(all.data, all.len, "\n\n", 2)) != NULL && all.data[0] == ':') {
        size_t n = (size_t)(end - all.data) + 2;
        all = (silt_slice){all.data + n, all.len - n};
    }
    if (end == NULL)
        return;
    if (silt_slice_starts(all, SILT_LIT("event: error\n"))) {
        refuse_first(c, (silt_slice){all.data, (size_t)(end - all.data)});
        return;
    }
    enter(c, SILT_RPC_PIPE_READY);
    silt_rpc_download_begin(c);
}

/* Drops process_info, and from the last event the fields that only HTTP clients get. */
static void add_log_event(struct silt_rpc_call *c, silt_slice event)
{
    static const char start[] = "event: exit\ndata: ";
    silt_slice head = {start, sizeof(start) - 1};
    silt_auto_buf b = {0};
    if (silt_slice_starts(event, SILT_LIT("event: process_info\n")))
        return;
    if (!silt_slice_starts(event, head)) {
        add(c, event);
        return;
    }
    silt_buf_init(&b, 2 * event.len + 1024);
    silt_buf_add(&b, head);
    silt_rpc_pick(&b, (silt_slice){event.data + head.len, event.len - head.len - 2},
                  "type processId exitCode status cause timestamp cursor", 0);
    silt_buf_add(&b, SILT_LIT("\n\n"));
    add(c, silt_buf_slice(&b));
}

static void add_log(struct silt_rpc_call *c, silt_slice bytes)
{
    const char *end;
    silt_rpc_call_keep(c, bytes);
    while (c->text.len > 0 && (end = memmem(c->text.data, c->text.len, "\n\n", 2)) != NULL) {
        size_t n = (size_t)(end - c->text.data) + 2;
        add_log_event(c, (silt_slice){c->text.data, n});
        silt_rpc_call_used(c, n);
    }
}

void silt_rpc_download_take(struct silt_rpc_call *c, silt_slice bytes)
{
    if (c->method->shape == SILT_RPC_FLOW_LOGS)
        add_log(c, bytes);
    else
        add(c, bytes);
    if (c->pipe == SILT_RPC_PIPE_HELD)
        look_at_first(c);
    else
        silt_rpc_download_pump(c);
}

void silt_rpc_download_end(struct silt_rpc_call *c, bool whole)
{
    if (silt_rpc_call_source_has_ended(c))
        return;
    silt_rpc_call_end_source(c, whole ? SILT_RPC_SOURCE_WHOLE : SILT_RPC_SOURCE_BROKEN);
    if (!whole) { /* the remaining bytes are useless */
        silt_rpc_hold(c->line, -(ptrdiff_t)c->queue.len);
        silt_buf_fini(&c->queue);
        c->queue.len = c->sent = 0;
    }
    if (c->pipe == SILT_RPC_PIPE_READY && c->client == SILT_RPC_RELEASED)
        silt_rpc_call_done(c);
    else if (c->pipe == SILT_RPC_PIPE_HELD)
        silt_rpc_call_fail(c, "WATCH_START_ERROR", "The stream ended before it began");
    else
        silt_rpc_download_pump(c);
}

/* ---- acknowledgements ---- */

static void stop(struct silt_rpc_call *c)
{
    struct silt_rpc_wait *w;
    while ((w = silt_list_first(&c->waits, struct silt_rpc_wait, link)) != NULL)
        silt_rpc_wait_drop(w);
    silt_loop_cancel(c->line->api->loop, &c->quiet);
    silt_rpc_hold(c->line, -(ptrdiff_t)(c->queue.len + c->text.len));
    silt_buf_fini(&c->queue);
    silt_buf_fini(&c->text);
    c->queue.len = c->text.len = c->sent = c->flying = 0;
    enter(c, SILT_RPC_PIPE_CLOSING);
    silt_rpc_say_release(c->line, c->pipe_id);
    silt_rpc_call_leave(c);
    silt_rpc_call_done(c);
}

/* A rejected write means that the client stopped reading. */
void silt_rpc_download_on_ack(struct silt_rpc_wait *w, bool good)
{
    struct silt_rpc_call *c = w->call;
    bool end = w->what == SILT_RPC_END;
    c->flying -= w->bytes;
    c->writes -= !end;
    silt_rpc_wait_drop(w);
    if (end || !good)
        stop(c);
    else
        silt_rpc_call_drain(c);
}

void silt_rpc_download_on_quiet(struct silt_timer *t)
{
    struct silt_rpc_call *c = silt_outer(t, struct silt_rpc_call, quiet);
    if (silt_rpc_call_source_has_ended(c) || c->pipe == SILT_RPC_PIPE_CLOSING)
        return;
    if (c->writes == 0 && c->queue.len == 0)
        add(c, SILT_LIT(": ka\n\n"));
    silt_rpc_download_pump(c);
    silt_loop_after(c->line->api->loop, &c->quiet, QUIET_MS);
}
