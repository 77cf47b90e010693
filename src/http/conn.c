/* SPDX-License-Identifier: Apache-2.0 */
#include "http/conn.h"
#include "base/clock.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LINGER_QUIET_MS = 2000,    /* for a client that has stopped sending */
    LINGER_MAX_MS = 10 * 1000, /* for a client that keeps sending */
};

static int64_t now(const struct silt_http_conn *c)
{
    return c->server->loop->now_ms;
}

static int64_t read_deadline(const struct silt_http_conn *c, enum silt_http_request_reader intake)
{
    const struct silt_http_limits *l = &c->server->limits;
    switch (intake) {
    case SILT_HTTP_IDLE:
        return now(c) + l->idle_timeout_ms;
    case SILT_HTTP_HEAD:
        return now(c) + l->head_timeout_ms;
    case SILT_HTTP_BODY:
        return c->raw ? 0 : now(c) + l->body_timeout_ms;
    case SILT_HTTP_SKIP:
        return now(c) + l->body_timeout_ms;
    case SILT_HTTP_LINGER:
        return now(c) + LINGER_QUIET_MS;
    case SILT_HTTP_NOTHING:
    case SILT_HTTP_TAKEN:
    case SILT_HTTP_PARTING:
    case SILT_HTTP_CLOSED:
        break;
    }
    return 0;
}

/* The only place that assigns the state. */
void silt_http_conn_enter(struct silt_http_conn *c, enum silt_http_request_reader next)
{
    c->intake = next;
    c->read_by_ms = read_deadline(c, next);
    c->fresh = 0;
}

bool silt_http_conn_wants(const struct silt_http_conn *c)
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
    case SILT_HTTP_TAKEN:
    case SILT_HTTP_PARTING:
    case SILT_HTTP_CLOSED:
        break;
    }
    return false;
}

static void free_conn(struct silt_grave *g)
{
    free(silt_outer(g, struct silt_http_conn, grave));
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
    silt_http_conn_enter(c, SILT_HTTP_CLOSED);
    c->grave.free = free_conn;
    silt_loop_bury(loop, &c->grave);
    silt_http_server_left(c);
}

/* Ends an exchange that the handler has not answered. */
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

enum { CLIENT_GONE = 499 }; /* for the log only; nginx's number */

void silt_http_conn_lose(struct silt_http_conn *c)
{
    drop_exchange(c, CLIENT_GONE);
    silt_http_conn_close(c);
}

void silt_http_conn_refuse(struct silt_http_conn *c, int status)
{
    if (c->exchange != NULL && c->exchange->streaming) {
        silt_http_conn_lose(c);
        return;
    }
    drop_exchange(c, status);
    silt_http_answer_refusal(c, status);
    c->clean = false;
    silt_http_conn_enter(c, SILT_HTTP_PARTING);
}

void silt_http_conn_drain(struct silt_http_conn *c)
{
    if (c->intake != SILT_HTTP_IDLE || !c->server->draining)
        return;
    c->clean = true;
    silt_http_conn_enter(c, SILT_HTTP_PARTING);
}

void silt_http_conn_answered(struct silt_http_exchange *x)
{
    struct silt_http_conn *c = x->conn;
    const struct silt_http_hooks *hooks = &c->server->hooks;
    bool whole = c->intake == SILT_HTTP_NOTHING || !silt_http_conn_has_body(c);
    if (hooks->on_answered != NULL)
        hooks->on_answered(hooks->context, &x->request, x->status, silt_clock_us() - x->started_us);
    c->exchange = NULL;
    silt_http_server_give_back(x);
    if (c->last || c->server->draining) {
        c->clean = whole;
        silt_http_conn_enter(c, SILT_HTTP_PARTING);
    } else if (whole) {
        silt_http_conn_enter(c, SILT_HTTP_IDLE);
    } else {
        c->taken = 0;
        silt_http_conn_enter(c, SILT_HTTP_SKIP);
    }
    if (c->in.len > 0 && c->server->batching != c)
        silt_http_server_defer(c);
}

/* Called at the end of every loop callback that touched this connection. */
static void finish_turn(struct silt_http_conn *c)
{
    struct silt_http_exchange *x = c->exchange;
    if (c->intake == SILT_HTTP_TAKEN && !c->broken && silt_http_answer_pending(c) == 0) {
        silt_http_conn_hand_over(c);
        return;
    }
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
    silt_http_request_reader_leftover(c);
    finish_turn(c);
}

static void halve(struct silt_http_conn *c)
{
    struct silt_http_exchange *x = c->exchange;
    c->halved = true;
    if (x != NULL && x->request.on_halved != NULL)
        x->request.on_halved(&x->request);
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_http_conn *c = silt_outer(w, struct silt_http_conn, watch);
    if (!silt_list_empty(&c->todo)) { /* buffered bytes come before new ones */
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
        halve(c);
    if ((events & EPOLLOUT) != 0) {
        silt_http_answer_flush(c);
        silt_http_request_reader_leftover(c);
    }
    if ((events & EPOLLIN) != 0 && c->intake != SILT_HTTP_CLOSED)
        silt_http_request_reader_read(c);
    finish_turn(c);
}

static void on_late_reader(struct silt_http_conn *c)
{
    if (c->intake == SILT_HTTP_HEAD || c->intake == SILT_HTTP_BODY)
        silt_http_conn_refuse(c, 408);
    else if (silt_http_answer_pending(c) > 0)
        silt_http_conn_enter(c, c->intake); /* the client is still reading an earlier response,
                                               which has a deadline of its own */
    else
        silt_http_conn_lose(c);
}

static void on_time(struct silt_timer *t)
{
    struct silt_http_conn *c = silt_outer(t, struct silt_http_conn, timer);
    if (c->write_by_ms > 0 && now(c) >= c->write_by_ms)
        silt_http_conn_lose(c);
    else if (c->read_by_ms > 0 && now(c) >= c->read_by_ms)
        on_late_reader(c);
    silt_http_conn_settle(c);
}

/* Everything is written. */
static void part(struct silt_http_conn *c)
{
    if (c->clean && c->in.len == 0) {
        silt_http_conn_close(c);
        return;
    }
    (void)shutdown(c->watch.fd, SHUT_WR);
    silt_buf_fini(&c->in);
    c->linger_by_ms = now(c) + LINGER_MAX_MS;
    silt_http_conn_enter(c, SILT_HTTP_LINGER);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

/* A timer that fires too early just rearms: extending a deadline costs nothing. */
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
    bool wants = silt_http_conn_wants(c);
    if (!wants)
        c->read_by_ms = 0; /* we are not waiting for the client */
    else if (c->read_by_ms == 0)
        silt_http_conn_enter(c, c->intake);
    if (wants)
        c->noisy = false;
    uint32_t events = c->noisy ? 0 : EPOLLIN;
    if (!c->halved)
        events |= EPOLLRDHUP;
    if (silt_http_answer_pending(c) > 0)
        events |= EPOLLOUT;
    /* Errors and hang-ups are always reported, but events 0 would remove the watch. */
    silt_loop_watch(c->server->loop, &c->watch, events != 0 ? events : EPOLLET);
    arm(c);
}

struct silt_http_conn *silt_http_conn_start(struct silt_http_server *s, int fd)
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
    silt_http_conn_enter(c, SILT_HTTP_IDLE);
    silt_http_conn_settle(c);
    return c;
}
