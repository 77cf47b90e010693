/* SPDX-License-Identifier: Apache-2.0 */
/* request_reader: parses a connection's bytes into requests and bodies. All connections read into
 * one shared buffer; unused bytes move to c->in. */
#include "http/conn.h"
#include "base/clock.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

enum {
    BODY_PROGRESS = 1024, /* bytes that count as progress of a body: single ones do not */
};

static void rebase(silt_slice *s, const char *from, size_t len, const char *to)
{
    uintptr_t at = (uintptr_t)s->data, start = (uintptr_t)from;
    if (s->data != NULL && at >= start && at <= start + len)
        s->data = to + (at - start);
}

/* Copies the head, because the shared buffer will be reused. */
static void keep_head(struct silt_http_exchange *x, silt_slice bytes)
{
    struct silt_http_head *h = &x->head;
    char *own = silt_arena_dup(&x->arena, bytes);
    if (own == NULL)
        abort();
    silt_slice *const slices[] = {&h->method, &h->target, &h->host, &h->path, &h->query};
    for (size_t i = 0; i < SILT_COUNT(slices); i++)
        rebase(slices[i], bytes.data, bytes.len, own);
    for (size_t i = 0; i < h->count; i++) {
        rebase(&h->fields[i].name, bytes.data, bytes.len, own);
        rebase(&h->fields[i].value, bytes.data, bytes.len, own);
    }
}

/* Each take_ function consumes bytes and returns whether there may be more to do. */
static bool take_head(struct silt_http_conn *c, silt_slice *bytes)
{
    struct silt_http_server *s = c->server;
    struct silt_http_exchange *x = silt_http_server_spare(s);
    if (bytes->len == 0)
        return false;
    int n = silt_http_parse(&x->head, *bytes, SILT_HTTP_REQUEST);
    if (n < 0) {
        silt_http_conn_refuse(c, -n);
        return false;
    }
    if (n == 0) {
        if (c->intake == SILT_HTTP_IDLE)
            silt_http_conn_enter(c, SILT_HTTP_HEAD);
        return false;
    }
    s->spare = x->next;
    s->spares--;
    keep_head(x, (silt_slice){bytes->data, (size_t)n});
    bytes->data += n;
    bytes->len -= (size_t)n;
    x->conn = c;
    x->request.head = &x->head;
    x->request.arena = &x->arena;
    x->request.tag = c->tag;
    x->started_us = silt_clock_us();
    c->exchange = x;
    c->last = x->head.close || s->draining;
    c->chunked = x->head.chunked;
    c->chunks = (struct silt_http_chunks){0};
    c->left = x->head.length;
    c->taken = 0;
    silt_http_conn_enter(c, SILT_HTTP_BODY);
    s->hooks.on_request(s->hooks.context, &x->request);
    return true;
}

/* The next piece of the body. 0: *ret_end says whether it is the last; the piece is empty if the
 * bytes have run out. -1: malformed. */
static int decode(struct silt_http_conn *c, silt_slice *bytes, silt_slice *ret_piece, bool *ret_end)
{
    *ret_piece = (silt_slice){bytes->data, 0};
    if (c->chunked) {
        enum silt_http_chunk got = silt_http_dechunk(&c->chunks, bytes, ret_piece);
        *ret_end = got == SILT_HTTP_CHUNK_END;
        c->taken += ret_piece->len;
        return got == SILT_HTTP_CHUNK_BAD ? -1 : 0;
    }
    ret_piece->len = bytes->len < c->left ? bytes->len : (size_t)c->left;
    bytes->data += ret_piece->len;
    bytes->len -= ret_piece->len;
    c->left -= ret_piece->len;
    c->taken += ret_piece->len;
    *ret_end = c->left == 0;
    return 0;
}

/* Memory grows with the bytes received, and all bodies together have a limit. */
static bool store(struct silt_http_exchange *x, silt_slice piece)
{
    struct silt_http_server *s = x->conn->server;
    silt_buf_add(&x->body, piece);
    s->body_bytes += x->body.cap - x->body_counted;
    x->body_counted = x->body.cap;
    uint64_t more = x->body.cap <= SILT_HTTP_SMALL_BODY ? SILT_HTTP_BODIES_MAX : x->body_max;
    return !x->body.broken && s->body_bytes <= SILT_HTTP_BODIES_MAX + more;
}

static void deliver(struct silt_http_exchange *x, silt_slice piece, bool end)
{
    struct silt_http_conn *c = x->conn;
    if (x->wish == SILT_HTTP_COLLECT && !store(x, piece)) {
        silt_http_conn_refuse(c, 503);
        return;
    }
    if (end)
        silt_http_conn_enter(c, SILT_HTTP_NOTHING);
    if (x->wish == SILT_HTTP_CONSUME) {
        x->on_piece(&x->request, piece, end);
    } else if (end) {
        x->request.body = silt_buf_slice(&x->body);
        x->on_body(&x->request);
    }
}

static bool take_body(struct silt_http_conn *c, silt_slice *bytes)
{
    struct silt_http_exchange *x = c->exchange;
    silt_slice piece;
    bool end;
    if (x->head.length > x->body_max) {
        silt_http_conn_refuse(c, 413);
        return false;
    }
    if (bytes->len == 0 && silt_http_conn_has_body(c)) {
        if (x->head.expect_continue && !x->continued)
            silt_http_answer_continue(x);
        return false;
    }
    if (decode(c, bytes, &piece, &end) < 0) {
        silt_http_conn_refuse(c, 400);
        return false;
    }
    if (c->taken > x->body_max) {
        silt_http_conn_refuse(c, 413);
        return false;
    }
    if (piece.len > 0 || end)
        deliver(x, piece, end);
    return true;
}

static bool take_unwanted(struct silt_http_conn *c, silt_slice *bytes)
{
    silt_slice piece;
    bool end;
    if (bytes->len == 0 && silt_http_conn_has_body(c))
        return false;
    if (decode(c, bytes, &piece, &end) < 0 || c->taken > SILT_HTTP_SKIP_MAX) {
        c->clean = false;
        silt_http_conn_enter(c, SILT_HTTP_PARTING);
        return false;
    }
    if (end)
        silt_http_conn_enter(c, SILT_HTTP_IDLE);
    silt_http_conn_drain(c);
    return true;
}

static bool take(struct silt_http_conn *c, silt_slice *bytes)
{
    if (!silt_http_conn_wants(c))
        return false;
    switch (c->intake) {
    case SILT_HTTP_IDLE:
    case SILT_HTTP_HEAD:
        return take_head(c, bytes);
    case SILT_HTTP_BODY:
        return take_body(c, bytes);
    case SILT_HTTP_SKIP:
        return take_unwanted(c, bytes);
    case SILT_HTTP_LINGER:
        bytes->len = 0;
        return false;
    case SILT_HTTP_NOTHING:
    case SILT_HTTP_TAKEN:
    case SILT_HTTP_PARTING:
    case SILT_HTTP_CLOSED:
        break;
    }
    return false;
}

/* Consumes what it can and returns the rest; responses produced meanwhile are sent in one write. */
static silt_slice process(struct silt_http_conn *c, silt_slice bytes)
{
    struct silt_http_server *s = c->server;
    silt_http_answer_batch(s, c);
    while (take(c, &bytes))
        continue;
    silt_http_answer_batch_end(s);
    return bytes;
}

static void note_progress(struct silt_http_conn *c, size_t n)
{
    c->fresh += n;
    bool body = c->intake == SILT_HTTP_BODY || c->intake == SILT_HTTP_SKIP;
    if (c->intake == SILT_HTTP_LINGER || (body && c->fresh >= BODY_PROGRESS))
        silt_http_conn_enter(c, c->intake);
}

void silt_http_request_reader_leftover(struct silt_http_conn *c)
{
    silt_slice rest = process(c, silt_buf_slice(&c->in));
    if (c->intake == SILT_HTTP_CLOSED)
        return;
    silt_buf_drop(&c->in, c->in.len - rest.len);
    if (c->in.len == 0)
        silt_buf_fini(&c->in);
}

/* A head that arrives in drops is parsed again only when a line is complete. */
static bool is_worth_a_look(const struct silt_http_conn *c, silt_slice more)
{
    return c->intake != SILT_HTTP_HEAD || silt_slice_has_byte(more, '\n')
           || c->in.len + more.len >= SILT_HTTP_HEAD_MAX;
}

static void feed(struct silt_http_conn *c, silt_slice bytes)
{
    note_progress(c, bytes.len);
    if (c->in.len > 0) {
        bool look = is_worth_a_look(c, bytes);
        silt_buf_add(&c->in, bytes);
        if (c->in.broken)
            abort();
        if (look)
            silt_http_request_reader_leftover(c);
        return;
    }
    silt_slice rest = process(c, bytes);
    if (c->intake != SILT_HTTP_CLOSED && rest.len > 0)
        silt_buf_add(&c->in, rest);
}

/* The client has half-closed. */
static void on_end(struct silt_http_conn *c)
{
    struct silt_http_exchange *x = c->exchange;
    c->noisy = true;
    if (c->raw && x != NULL && x->request.halves && !x->paused) {
        x->paused = true; /* nothing more will come: stop reading */
        x->on_piece(&x->request, (silt_slice){"", 0}, true);
        return;
    }
    if (c->intake == SILT_HTTP_SKIP)
        silt_http_conn_enter(c, SILT_HTTP_PARTING);
    else
        silt_http_conn_lose(c);
}

/* Whether the read can go straight to the handler's buffer: it is only the body of this request,
 * and the handler has one. */
static bool is_for_handler(const struct silt_http_conn *c)
{
    return c->intake == SILT_HTTP_BODY && !c->chunked && c->left > 0 && c->in.len == 0
           && c->exchange->wish == SILT_HTTP_CONSUME && c->exchange->request.on_room != NULL;
}

static char *handlers_room(struct silt_http_conn *c, size_t *ret_size)
{
    struct silt_http_request *r = &c->exchange->request;
    char *room = r->on_room(r, ret_size);
    if (*ret_size > c->left)
        *ret_size = (size_t)c->left;
    return room;
}

void silt_http_request_reader_read(struct silt_http_conn *c)
{
    struct silt_http_server *s = c->server;
    if (!silt_http_conn_wants(c)) {
        c->noisy = true;
        return;
    }
    size_t size = sizeof(s->room);
    char *room = is_for_handler(c) ? handlers_room(c, &size) : s->room;
    ssize_t n = recv(c->watch.fd, room, size, 0);
    if (n > 0)
        feed(c, (silt_slice){room, (size_t)n});
    else if (n == 0)
        on_end(c);
    else if (errno != EAGAIN && errno != EINTR)
        silt_http_conn_lose(c);
}

/* An internal request already has its whole body, within its own limits. */
static uint64_t most_of(const struct silt_http_exchange *x)
{
    return x->conn != NULL ? x->conn->server->limits.body_max : UINT64_MAX;
}

static void wish_is_known(struct silt_http_exchange *x)
{
    if (x->conn != NULL && x->conn->server->batching != x->conn)
        silt_http_server_defer(x->conn);
}

void silt_http_collect(struct silt_http_request *r, uint64_t max,
                       void (*on_body)(struct silt_http_request *r))
{
    struct silt_http_exchange *x = silt_outer(r, struct silt_http_exchange, request);
    uint64_t most = most_of(x);
    assert(x->wish == SILT_HTTP_UNDECIDED);
    x->wish = SILT_HTTP_COLLECT;
    x->body_max = max < most ? max : most;
    x->body.max = x->body_max;
    x->on_body = on_body;
    wish_is_known(x);
}

void silt_http_consume(struct silt_http_request *r, uint64_t max,
                       void (*on_piece)(struct silt_http_request *r, silt_slice piece, bool end))
{
    struct silt_http_exchange *x = silt_outer(r, struct silt_http_exchange, request);
    uint64_t most = most_of(x);
    assert(x->wish == SILT_HTTP_UNDECIDED);
    x->wish = SILT_HTTP_CONSUME;
    x->body_max = max < most ? max : most;
    x->on_piece = on_piece;
    wish_is_known(x);
}

void silt_http_pause(struct silt_http_request *r, bool paused)
{
    struct silt_http_exchange *x = silt_outer(r, struct silt_http_exchange, request);
    x->paused = paused;
    if (x->conn != NULL)
        silt_http_server_defer(x->conn);
    else
        silt_http_internal_resume(x->inner);
}
