/* SPDX-License-Identifier: Apache-2.0 */
/* answer: writes responses. While a connection's input is being processed, its responses gather in
 * the server's batch and are sent in one write; otherwise they are written at once. Bytes that the
 * kernel does not take wait in c->out. */
#include "http/conn.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

enum { BATCH_KEPT = 64 * 1024 }; /* memory of the batch kept for the next one */

size_t silt_http_answer_pending(const struct silt_http_conn *c)
{
    size_t queued = c->out.len - c->out_at;
    return c->server->batching == c ? queued + c->server->batch.len : queued;
}

/* Nothing can be written any more. The handler may be on the stack, so on_gone is called later. */
static void break_off(struct silt_http_conn *c)
{
    c->broken = true;
    c->out_at = 0;
    silt_buf_fini(&c->out);
    silt_http_server_defer(c);
}

/* Returns how many bytes the kernel took. */
static size_t send_some(struct silt_http_conn *c, silt_slice bytes)
{
    ssize_t n = send(c->watch.fd, bytes.data, bytes.len, MSG_NOSIGNAL);
    if (n > 0) {
        c->write_by_ms = c->server->loop->now_ms + c->server->limits.write_timeout_ms;
        return (size_t)n;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        break_off(c);
    return 0;
}

void silt_http_answer_flush(struct silt_http_conn *c)
{
    if (c->out.len == c->out_at || c->broken)
        return;
    c->out_at += send_some(c, (silt_slice){c->out.data + c->out_at, c->out.len - c->out_at});
    if (c->out_at == c->out.len) {
        c->out_at = 0;
        c->write_by_ms = 0;
        silt_buf_fini(&c->out);
    } else if (c->out_at > c->out.cap / 2) {
        silt_buf_drop(&c->out, c->out_at);
        c->out_at = 0;
    }
}

void silt_http_answer_batch(struct silt_http_server *s, struct silt_http_conn *c)
{
    assert(s->batching == NULL && s->batch.len == 0);
    s->batching = c;
}

/* Sends the batch and keeps what the kernel did not take. */
static void send_batch(struct silt_http_conn *c)
{
    silt_slice rest = silt_buf_slice(&c->server->batch);
    if (c->intake == SILT_HTTP_CLOSED || c->broken || rest.len == 0)
        return;
    if (c->out.len == 0) {
        size_t n = send_some(c, rest);
        rest.data += n;
        rest.len -= n;
        if (rest.len == 0)
            c->write_by_ms = 0;
    }
    if (rest.len == 0 || c->broken)
        return;
    if (c->write_by_ms == 0)
        c->write_by_ms = c->server->loop->now_ms + c->server->limits.write_timeout_ms;
    silt_buf_add(&c->out, rest);
    if (c->out.broken)
        break_off(c);
}

void silt_http_answer_batch_end(struct silt_http_server *s)
{
    if (s->batch.broken)
        break_off(s->batching);
    send_batch(s->batching);
    if (s->batch.cap > BATCH_KEPT)
        silt_buf_fini(&s->batch);
    else
        silt_buf_clear(&s->batch);
    s->batching = NULL;
}

/* Where this connection's bytes go now: the batch or c->out. */
struct outlet {
    struct silt_buf *buf;
    bool own; /* the batch was opened for this call only */
};

static struct outlet open_outlet(struct silt_http_conn *c)
{
    struct silt_http_server *s = c->server;
    if (s->batching == NULL) {
        silt_http_answer_batch(s, c);
        return (struct outlet){&s->batch, true};
    }
    return (struct outlet){s->batching == c ? &s->batch : &c->out, false};
}

static void close_outlet(struct silt_http_conn *c, struct outlet o)
{
    struct silt_http_server *s = c->server;
    if (o.own) {
        silt_http_answer_batch_end(s);
        return;
    }
    if (s->batching == c)
        return;
    if (c->out.broken)
        break_off(c);
    if (c->write_by_ms == 0)
        c->write_by_ms = s->loop->now_ms + s->limits.write_timeout_ms;
    silt_http_answer_flush(c);
}

/* The body is too long to skip, or the client (after Expect: 100-continue) may or may not send
 * it. */
static bool leaves_bytes(const struct silt_http_exchange *x)
{
    const struct silt_http_conn *c = x->conn;
    if (c->intake != SILT_HTTP_BODY || (!c->chunked && c->left == 0))
        return false;
    return c->left > SILT_HTTP_SKIP_MAX || (x->head.expect_continue && !x->continued);
}

static struct silt_http_answer begin_answer(struct silt_http_exchange *x, int status)
{
    struct silt_http_conn *c = x->conn;
    bool has_none = status == 204 || status == 304;
    assert(!x->streaming);
    c->last = c->last || c->server->draining || leaves_bytes(x);
    x->status = status;
    return (struct silt_http_answer){
        .status = status,
        .framing = has_none ? SILT_HTTP_NO_BODY : SILT_HTTP_LENGTH,
        .head_only = silt_slice_eq(x->head.method, SILT_LIT("HEAD")),
        .old = x->head.minor == 0,
        .reason = x->request.reason,
        .more_fields = x->request.more_fields,
    };
}

static struct silt_http_exchange *exchange_of(struct silt_http_request *r)
{
    return silt_outer(r, struct silt_http_exchange, request);
}

static void end_answer(struct silt_http_exchange *x, struct outlet o)
{
    struct silt_http_conn *c = x->conn;
    close_outlet(c, o);
    silt_http_conn_answered(x);
    if (c->server->batching != c)
        silt_http_conn_settle(c);
}

void silt_http_reply(struct silt_http_request *r, int status, silt_slice content_type,
                     silt_slice fields, silt_slice body)
{
    struct silt_http_exchange *x = exchange_of(r);
    if (x->inner != NULL) {
        silt_http_internal_reply(x->inner, status, content_type, body);
        return;
    }
    struct silt_http_answer a = begin_answer(x, status);
    a.type = content_type;
    a.fields = fields;
    a.body = body;
    struct outlet o = open_outlet(x->conn);
    silt_http_lay_answer(x->conn, o.buf, &a);
    end_answer(x, o);
}

static void begin_stream(struct silt_http_exchange *x, struct silt_http_answer *a)
{
    struct silt_http_conn *c = x->conn;
    x->bodiless = a->framing == SILT_HTTP_NO_BODY || a->head_only;
    x->chunked = a->framing == SILT_HTTP_CHUNKED;
    c->last = c->last || a->framing == SILT_HTTP_UNTIL_CLOSE;
    x->streaming = true;
    struct outlet o = open_outlet(c);
    silt_http_lay_answer(c, o.buf, a);
    close_outlet(c, o);
    if (c->server->batching != c)
        silt_http_conn_settle(c);
}

void silt_http_begin(struct silt_http_request *r, int status, silt_slice content_type,
                     silt_slice fields)
{
    struct silt_http_exchange *x = exchange_of(r);
    if (x->inner != NULL) {
        silt_http_internal_begin(x->inner, status, content_type);
        return;
    }
    struct silt_http_answer a = begin_answer(x, status);
    a.type = content_type;
    a.fields = fields;
    if (a.framing != SILT_HTTP_NO_BODY)
        a.framing = x->head.minor == 0 ? SILT_HTTP_UNTIL_CLOSE : SILT_HTTP_CHUNKED;
    begin_stream(x, &a);
}

void silt_http_begin_sized(struct silt_http_request *r, int status, silt_slice content_type,
                           silt_slice fields, uint64_t length)
{
    struct silt_http_exchange *x = exchange_of(r);
    x->sized = true;
    x->size_left = length;
    if (x->inner != NULL) {
        silt_http_internal_begin(x->inner, status, content_type);
        return;
    }
    struct silt_http_answer a = begin_answer(x, status);
    a.type = content_type;
    a.fields = fields;
    a.framing = SILT_HTTP_SIZED;
    a.length = length;
    begin_stream(x, &a);
}

static void put_chunk(struct silt_buf *b, silt_slice bytes)
{
    char size[20];
    int n = snprintf(size, sizeof(size), "%zx\r\n", bytes.len);
    silt_buf_add(b, (silt_slice){size, (size_t)n});
    silt_buf_add(b, bytes);
    silt_buf_add(b, SILT_LIT("\r\n"));
}

void silt_http_write(struct silt_http_request *r, silt_slice bytes)
{
    struct silt_http_exchange *x = exchange_of(r);
    struct silt_http_conn *c = x->conn;
    assert(x->streaming);
    if (x->sized && bytes.len > x->size_left)
        bytes.len = (size_t)x->size_left;
    x->size_left -= x->sized ? bytes.len : 0;
    if (x->inner != NULL) {
        silt_http_internal_write(x->inner, bytes);
        return;
    }
    if (x->bodiless || bytes.len == 0 || c->broken)
        return;
    struct outlet o = open_outlet(c);
    if (x->chunked)
        put_chunk(o.buf, bytes);
    else
        silt_buf_add(o.buf, bytes);
    close_outlet(c, o);
    if (silt_http_answer_pending(c) >= SILT_HTTP_MARK)
        x->full = true;
    if (c->server->batching != c)
        silt_http_conn_settle(c);
}

size_t silt_http_pending(const struct silt_http_request *r)
{
    _Static_assert(offsetof(struct silt_http_exchange, request) == 0,
                   "a cast leads from one to the other");
    const struct silt_http_exchange *x = (const struct silt_http_exchange *)(const void *)r;
    const struct silt_http_conn *c = x->conn;
    if (x->inner != NULL)
        return silt_http_internal_pending(x->inner);
    return c->broken ? SILT_HTTP_MARK : silt_http_answer_pending(c);
}

void silt_http_end(struct silt_http_request *r)
{
    struct silt_http_exchange *x = exchange_of(r);
    if (x->sized && x->size_left > 0 && !x->bodiless) {
        silt_http_cut(r);
        return;
    }
    if (x->inner != NULL) {
        silt_http_internal_end(x->inner, true);
        return;
    }
    struct outlet o = open_outlet(x->conn);
    assert(x->streaming);
    if (x->chunked && !x->bodiless && !x->conn->broken)
        silt_buf_add(o.buf, SILT_LIT("0\r\n\r\n"));
    end_answer(x, o);
}

void silt_http_cut(struct silt_http_request *r)
{
    struct silt_http_exchange *x = exchange_of(r);
    struct silt_http_conn *c = x->conn;
    if (x->inner != NULL) {
        silt_http_internal_end(x->inner, false);
        return;
    }
    /* Where the end of the connection marks the end of the response, only a reset shows that it is
     * incomplete. */
    bool reset = !x->streaming || !x->chunked;
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    if (reset)
        (void)setsockopt(c->watch.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    else if (c->server->batching == c)
        send_batch(c);
    if (!x->streaming)
        x->status = 500;
    c->last = true;
    silt_http_conn_answered(x);
    silt_http_conn_close(c);
}

void silt_http_answer_switch(struct silt_http_exchange *x, silt_slice fields)
{
    struct silt_http_answer a = begin_answer(x, 101);
    a.framing = SILT_HTTP_NO_BODY;
    a.fields = fields;
    begin_stream(x, &a);
    x->bodiless = false;
    x->conn->last = true; /* not earlier: the response head would announce it */
}

void silt_http_answer_continue(struct silt_http_exchange *x)
{
    struct outlet o = open_outlet(x->conn);
    silt_buf_add(o.buf, SILT_LIT("HTTP/1.1 100 Continue\r\n\r\n"));
    close_outlet(x->conn, o);
    x->continued = true;
}

void silt_http_answer_refusal(struct silt_http_conn *c, int status)
{
    struct silt_http_server *s = c->server;
    struct silt_http_answer a = {
        .status = status, .framing = SILT_HTTP_LENGTH, .type = SILT_LIT("application/json")};
    silt_buf_clear(&s->refusal);
    if (s->hooks.on_refusal != NULL)
        s->hooks.on_refusal(s->hooks.context, status, &s->refusal);
    a.body = silt_buf_slice(&s->refusal);
    c->last = true;
    struct outlet o = open_outlet(c);
    silt_http_lay_answer(c, o.buf, &a);
    close_outlet(c, o);
}
