/* SPDX-License-Identifier: Apache-2.0 */
#include "http/conn.h"
#include "base/clock.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BODY_PROGRESS = 1024,      /* bytes that count as progress of a body: drops of one do not */
    LINGER_QUIET_MS = 2000,    /* a parted client that says nothing more */
    LINGER_MAX_MS = 10 * 1000, /* a parted client that does not stop talking */
    BODIES_MAX = 256 * 1024 * 1024, /* memory of collected bodies, all connections together */
};

static int64_t now(const struct silt_http_conn *c)
{
    return c->server->loop->now_ms;
}

static int64_t read_deadline(const struct silt_http_conn *c, enum silt_http_intake intake)
{
    const struct silt_http_limits *l = &c->server->limits;
    switch (intake) {
    case SILT_HTTP_IDLE:
        return now(c) + l->idle_timeout_ms;
    case SILT_HTTP_HEAD:
        return now(c) + l->head_timeout_ms;
    case SILT_HTTP_BODY:
    case SILT_HTTP_SKIP:
        return now(c) + l->body_timeout_ms;
    case SILT_HTTP_LINGER:
        return now(c) + LINGER_QUIET_MS;
    case SILT_HTTP_NOTHING:
    case SILT_HTTP_PARTING:
    case SILT_HTTP_CLOSED:
        break;
    }
    return 0;
}

/* The only place that assigns the state. */
static void enter(struct silt_http_conn *c, enum silt_http_intake next)
{
    c->intake = next;
    c->read_by_ms = read_deadline(c, next);
    c->fresh = 0;
}

/* Whether bytes, if there were any, could be used now. */
static bool wants_input(const struct silt_http_conn *c)
{
    const struct silt_http_exchange *x = c->exchange;
    if (c->broken)
        return false;
    switch (c->intake) {
    case SILT_HTTP_IDLE:
    case SILT_HTTP_HEAD:
        return silt_http_answer_pending(c) < SILT_HTTP_MARK; /* of earlier, pipelined requests */
    case SILT_HTTP_BODY:
        return x->wish != SILT_HTTP_UNDECIDED && !x->paused;
    case SILT_HTTP_SKIP:
    case SILT_HTTP_LINGER:
        return true;
    case SILT_HTTP_NOTHING:
    case SILT_HTTP_PARTING:
    case SILT_HTTP_CLOSED:
        break;
    }
    return false;
}

static void free_conn(struct silt_grave *g)
{
    free(silt_container_of(g, struct silt_http_conn, grave));
}

void silt_http_conn_close(struct silt_http_conn *c)
{
    struct silt_loop *loop = c->server->loop;
    assert(c->exchange == NULL);
    silt_loop_forget(loop, &c->watch);
    silt_loop_cancel(loop, &c->timer);
    silt_close_fd(&c->watch.fd);
    silt_buf_fini(&c->in);
    silt_buf_fini(&c->out);
    silt_list_remove(&c->link);
    silt_list_remove(&c->todo);
    enter(c, SILT_HTTP_CLOSED);
    c->grave.free = free_conn;
    silt_loop_bury(loop, &c->grave);
    silt_http_server_left(c);
}

/* Ends the exchange for the handler, who has not answered it. */
static void drop_exchange(struct silt_http_conn *c, int status)
{
    struct silt_http_exchange *x = c->exchange;
    const struct silt_http_hooks *hooks = &c->server->hooks;
    if (x == NULL)
        return;
    if (x->request.on_gone != NULL)
        x->request.on_gone(&x->request);
    if (hooks->on_answered != NULL)
        hooks->on_answered(hooks->context, &x->request, x->streaming ? x->status : status,
                           silt_clock_us() - x->started_us);
    c->exchange = NULL;
    silt_http_server_give_back(x);
}

enum { CLIENT_GONE = 499 }; /* for the log only; the number that nginx uses */

void silt_http_conn_lose(struct silt_http_conn *c)
{
    drop_exchange(c, CLIENT_GONE);
    silt_http_conn_close(c);
}

/* Some of it may still come. */
static bool has_body(const struct silt_http_conn *c)
{
    return c->chunked || c->left > 0;
}

/* The server answers instead of the handler. */
static void refuse(struct silt_http_conn *c, int status)
{
    if (c->exchange != NULL && c->exchange->streaming) {
        silt_http_conn_lose(c);
        return;
    }
    drop_exchange(c, status);
    silt_http_answer_refusal(c, status);
    c->clean = false;
    enter(c, SILT_HTTP_PARTING);
}

void silt_http_conn_drain(struct silt_http_conn *c)
{
    if (c->intake != SILT_HTTP_IDLE || !c->server->draining)
        return;
    c->clean = true;
    enter(c, SILT_HTTP_PARTING);
}

void silt_http_conn_answered(struct silt_http_exchange *x)
{
    struct silt_http_conn *c = x->conn;
    const struct silt_http_hooks *hooks = &c->server->hooks;
    bool whole = c->intake == SILT_HTTP_NOTHING || !has_body(c);
    if (hooks->on_answered != NULL)
        hooks->on_answered(hooks->context, &x->request, x->status, silt_clock_us() - x->started_us);
    c->exchange = NULL;
    silt_http_server_give_back(x);
    if (c->last || c->server->draining) {
        c->clean = whole;
        enter(c, SILT_HTTP_PARTING);
    } else if (whole) {
        enter(c, SILT_HTTP_IDLE);
    } else {
        c->taken = 0;
        enter(c, SILT_HTTP_SKIP);
    }
    if (c->in.len > 0 && c->server->batching != c)
        silt_http_server_defer(c);
}

static void rebase(silt_slice *s, const char *from, size_t len, const char *to)
{
    uintptr_t at = (uintptr_t)s->data, start = (uintptr_t)from;
    if (s->data != NULL && at >= start && at <= start + len)
        s->data = to + (at - start);
}

/* The bytes of the head lie in memory that others will use: the request gets its own. */
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

/* Each of the takers uses up bytes and answers whether there may be more to do. */
static bool take_head(struct silt_http_conn *c, silt_slice *bytes)
{
    struct silt_http_server *s = c->server;
    struct silt_http_exchange *x = silt_http_server_spare(s);
    if (bytes->len == 0)
        return false;
    int n = silt_http_parse(&x->head, *bytes, false);
    if (n < 0) {
        refuse(c, -n);
        return false;
    }
    if (n == 0) {
        if (c->intake == SILT_HTTP_IDLE)
            enter(c, SILT_HTTP_HEAD);
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
    x->started_us = silt_clock_us();
    c->exchange = x;
    c->last = x->head.close || s->draining;
    c->chunked = x->head.chunked;
    c->chunks = (struct silt_http_chunks){0};
    c->left = x->head.length;
    c->taken = 0;
    enter(c, SILT_HTTP_BODY);
    s->hooks.on_request(s->hooks.context, &x->request);
    return true;
}

/* The next piece of the body. 0: *ret_end says whether it is the last, and there may be none when
 * the bytes have run out; -1: it is malformed. */
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

/* Memory grows with what arrived, and all bodies together have a ceiling. */
static bool store(struct silt_http_exchange *x, silt_slice piece)
{
    struct silt_http_server *s = x->conn->server;
    silt_buf_add(&x->body, piece);
    s->body_bytes += x->body.cap - x->body_counted;
    x->body_counted = x->body.cap;
    return !x->body.broken && s->body_bytes <= BODIES_MAX + s->limits.body_max;
}

static void deliver(struct silt_http_exchange *x, silt_slice piece, bool end)
{
    struct silt_http_conn *c = x->conn;
    if (x->wish == SILT_HTTP_COLLECT && !store(x, piece)) {
        refuse(c, 503);
        return;
    }
    if (end)
        enter(c, SILT_HTTP_NOTHING);
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
        refuse(c, 413);
        return false;
    }
    if (bytes->len == 0 && has_body(c)) {
        if (x->head.expect_continue && !x->continued)
            silt_http_answer_continue(x);
        return false;
    }
    if (decode(c, bytes, &piece, &end) < 0) {
        refuse(c, 400);
        return false;
    }
    if (c->taken > x->body_max) {
        refuse(c, 413);
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
    if (bytes->len == 0 && has_body(c))
        return false;
    if (decode(c, bytes, &piece, &end) < 0 || c->taken > SILT_HTTP_SKIP_MAX) {
        c->clean = false;
        enter(c, SILT_HTTP_PARTING);
        return false;
    }
    if (end)
        enter(c, SILT_HTTP_IDLE);
    silt_http_conn_drain(c);
    return true;
}

static bool take(struct silt_http_conn *c, silt_slice *bytes)
{
    if (!wants_input(c))
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
    case SILT_HTTP_PARTING:
    case SILT_HTTP_CLOSED:
        break;
    }
    return false;
}

/* Uses what can be used now and answers the rest; answers that are given meanwhile leave in one
 * write. */
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
        enter(c, c->intake);
}

static void use_leftover(struct silt_http_conn *c)
{
    silt_slice rest = process(c, silt_buf_slice(&c->in));
    if (c->intake == SILT_HTTP_CLOSED)
        return;
    silt_buf_drop(&c->in, c->in.len - rest.len);
    if (c->in.len == 0)
        silt_buf_fini(&c->in);
}

/* A head that comes in drops is looked at again only when a line is complete. */
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
            use_leftover(c);
        return;
    }
    silt_slice rest = process(c, bytes);
    if (c->intake != SILT_HTTP_CLOSED && rest.len > 0)
        silt_buf_add(&c->in, rest);
}

/* The client will send nothing more. */
static void on_end(struct silt_http_conn *c)
{
    c->noisy = true;
    if (c->intake == SILT_HTTP_SKIP)
        enter(c, SILT_HTTP_PARTING);
    else
        silt_http_conn_lose(c);
}

static void on_readable(struct silt_http_conn *c)
{
    struct silt_http_server *s = c->server;
    if (!wants_input(c)) {
        c->noisy = true;
        return;
    }
    ssize_t n = recv(c->watch.fd, s->room, sizeof(s->room), 0);
    if (n > 0)
        feed(c, (silt_slice){s->room, (size_t)n});
    else if (n == 0)
        on_end(c);
    else if (errno != EAGAIN && errno != EINTR)
        silt_http_conn_lose(c);
}

/* The end of every turn that this connection took part in. */
static void finish_turn(struct silt_http_conn *c)
{
    struct silt_http_exchange *x = c->exchange;
    if (c->intake != SILT_HTTP_CLOSED && x != NULL && x->full && !c->broken
        && silt_http_answer_pending(c) < SILT_HTTP_MARK / 2) {
        x->full = false;
        if (x->request.on_drain != NULL)
            x->request.on_drain(&x->request);
    }
    silt_http_conn_settle(c);
}

void silt_http_conn_resume(struct silt_http_conn *c)
{
    if (c->broken) {
        silt_http_conn_lose(c);
        return;
    }
    silt_http_answer_flush(c);
    use_leftover(c);
    finish_turn(c);
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_http_conn *c = silt_container_of(w, struct silt_http_conn, watch);
    if (!silt_list_empty(&c->todo)) { /* what is there already comes before what is new */
        silt_list_remove(&c->todo);
        silt_http_conn_resume(c);
    }
    if (c->intake == SILT_HTTP_CLOSED)
        return;
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
        silt_http_conn_lose(c);
        return;
    }
    if ((events & EPOLLRDHUP) != 0)
        c->halved = true;
    if ((events & EPOLLOUT) != 0) {
        silt_http_answer_flush(c);
        use_leftover(c);
    }
    if ((events & EPOLLIN) != 0 && c->intake != SILT_HTTP_CLOSED)
        on_readable(c);
    finish_turn(c);
}

static void on_late_reader(struct silt_http_conn *c)
{
    if (c->intake == SILT_HTTP_HEAD || c->intake == SILT_HTTP_BODY)
        refuse(c, 408);
    else if (silt_http_answer_pending(c) > 0)
        enter(c, c->intake); /* still taking an earlier answer: that has a deadline of its own */
    else
        silt_http_conn_lose(c);
}

static void on_time(struct silt_timer *t)
{
    struct silt_http_conn *c = silt_container_of(t, struct silt_http_conn, timer);
    if (c->write_by_ms > 0 && now(c) >= c->write_by_ms)
        silt_http_conn_lose(c);
    else if (c->read_by_ms > 0 && now(c) >= c->read_by_ms)
        on_late_reader(c);
    silt_http_conn_settle(c);
}

/* All is written. */
static void part(struct silt_http_conn *c)
{
    if (c->clean && c->in.len == 0) {
        silt_http_conn_close(c);
        return;
    }
    (void)shutdown(c->watch.fd, SHUT_WR);
    silt_buf_fini(&c->in);
    c->linger_by_ms = now(c) + LINGER_MAX_MS;
    enter(c, SILT_HTTP_LINGER);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

/* A timer that rings too early just looks again: moving a deadline away costs nothing. */
static void arm(struct silt_http_conn *c)
{
    if (c->intake == SILT_HTTP_LINGER)
        c->read_by_ms = earlier(c->read_by_ms, c->linger_by_ms);
    int64_t by = earlier(c->read_by_ms, c->write_by_ms);
    if (by > 0 && (c->timer.place == 0 || c->timer.at_ms > by))
        silt_loop_after(c->server->loop, &c->timer, by - now(c));
}

void silt_http_conn_settle(struct silt_http_conn *c)
{
    if (c->intake == SILT_HTTP_PARTING && silt_http_answer_pending(c) == 0 && !c->broken)
        part(c);
    if (c->intake == SILT_HTTP_CLOSED)
        return;
    bool wants = wants_input(c);
    if (!wants)
        c->read_by_ms = 0; /* it is not the client who is late */
    else if (c->read_by_ms == 0)
        enter(c, c->intake);
    if (wants)
        c->noisy = false;
    uint32_t events = c->noisy ? 0 : EPOLLIN;
    if (!c->halved)
        events |= EPOLLRDHUP;
    if (silt_http_answer_pending(c) > 0)
        events |= EPOLLOUT;
    /* Errors and hang-ups are always told, but a watch for nothing at all is none. */
    silt_loop_watch(c->server->loop, &c->watch, events != 0 ? events : EPOLLET);
    arm(c);
}

void silt_http_conn_start(struct silt_http_server *s, int fd)
{
    struct silt_http_conn *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    c->server = s;
    c->watch = (struct silt_watch){.fd = fd, .on_ready = on_ready};
    c->timer.on_time = on_time;
    silt_list_init(&c->todo);
    silt_list_append(&s->conns, &c->link);
    silt_buf_init(&c->in, SILT_HTTP_HEAD_MAX + SILT_HTTP_READ_SIZE);
    silt_buf_init(&c->out, SIZE_MAX / 2);
    enter(c, SILT_HTTP_IDLE);
    silt_http_conn_settle(c);
}

void silt_http_collect(struct silt_http_request *r, uint64_t max,
                       void (*on_body)(struct silt_http_request *r))
{
    struct silt_http_exchange *x = silt_container_of(r, struct silt_http_exchange, request);
    uint64_t most = x->conn->server->limits.body_max;
    assert(x->wish == SILT_HTTP_UNDECIDED);
    x->wish = SILT_HTTP_COLLECT;
    x->body_max = max < most ? max : most;
    x->body.max = x->body_max;
    x->on_body = on_body;
    if (x->conn->server->batching != x->conn)
        silt_http_server_defer(x->conn);
}

void silt_http_consume(struct silt_http_request *r, uint64_t max,
                       void (*on_piece)(struct silt_http_request *r, silt_slice piece, bool end))
{
    struct silt_http_exchange *x = silt_container_of(r, struct silt_http_exchange, request);
    uint64_t most = x->conn->server->limits.body_max;
    assert(x->wish == SILT_HTTP_UNDECIDED);
    x->wish = SILT_HTTP_CONSUME;
    x->body_max = max < most ? max : most;
    x->on_piece = on_piece;
    if (x->conn->server->batching != x->conn)
        silt_http_server_defer(x->conn);
}

void silt_http_pause(struct silt_http_request *r, bool paused)
{
    struct silt_http_exchange *x = silt_container_of(r, struct silt_http_exchange, request);
    x->paused = paused;
    silt_http_server_defer(x->conn);
}
