/* SPDX-License-Identifier: Apache-2.0 */
/* pass: what both sides of an exchange say, each to the other. */
#include "base/clock.h"
#include "proxy/exchange.h"
#include "proxy/flow.h"
#include "proxy/veil.h"

#include <errno.h>

static void on_upstream(struct silt_upstream *u, uint32_t events);

static bool is_over(const struct silt_exchange *x)
{
    return x->visitor->exchange != x;
}

/* To the service */

/* An error here is not the end: the service may have answered before it closed. */
static void flush_up(struct silt_exchange *x)
{
    uint64_t sent = 0;
    if (x->up_broken) {
        silt_buf_clear(&x->to_up);
        return;
    }
    if (silt_flow_flush(x->up->watch.fd, &x->to_up, &sent) < 0) {
        x->up_broken = true;
        silt_buf_clear(&x->to_up);
    }
    if (sent > 0)
        x->active_ms = x->visitor->all->loop->now_ms;
}

static void put_up(struct silt_exchange *x, enum silt_body_kind kind, silt_slice data)
{
    uint64_t sent = 0;
    x->body_sent = true;
    if (x->up_broken)
        return;
    if (kind != SILT_BODY_LENGTH || x->to_up.len > 0)
        silt_body_put(kind, &x->to_up, data);
    else if (silt_flow_forward(x->up->watch.fd, &x->to_up, data, &sent) < 0)
        x->up_broken = true;
}

/* The request's body; false: it is over. */
static bool feed(struct silt_exchange *x, silt_slice *in)
{
    silt_slice data;
    for (;;) {
        switch (silt_body_next(&x->request, in, &data)) {
        case SILT_HTTP_CHUNK_BAD:
            silt_exchange_fail(x, SILT_PAGE_MALFORMED);
            return false;
        case SILT_HTTP_CHUNK_MORE:
            return true;
        case SILT_HTTP_CHUNK_DATA:
            put_up(x, x->request.kind, data);
            break;
        case SILT_HTTP_CHUNK_END:
            silt_body_end(x->request.kind, &x->to_up);
            x->request_done = true;
            return true;
        }
    }
}

/* What has come already; false: it is over. */
static bool feed_kept(struct silt_exchange *x)
{
    struct silt_visitor *v = x->visitor;
    silt_slice in = silt_buf_slice(&v->in);
    if (x->stage == SILT_EXCHANGE_TUNNEL) {
        silt_buf_add(&x->to_up, in);
        in.len = 0;
    } else if (!x->request_done && !feed(x, &in)) {
        return false;
    }
    silt_buf_drop(&v->in, v->in.len - in.len);
    return true;
}

static bool reads_visitor(const struct silt_exchange *x)
{
    if (x->to_up.len > 0 || x->throttled[SILT_GUEST_UP] || x->visitor->halved)
        return false;
    if (x->visitor->veil != NULL && silt_veil_is_chatty(x->visitor->veil))
        return false; /* it wants answers to what it says of TLS, and does not read them */
    return x->stage == SILT_EXCHANGE_TUNNEL || (!x->request_done && !x->up_broken);
}

static void on_visitor_end(struct silt_exchange *x, bool broken)
{
    if (broken || x->stage != SILT_EXCHANGE_TUNNEL)
        silt_visitor_cut(x->visitor); /* half a request is none */
    else
        x->visitor->halved = true;
}

static void on_visitor_bytes(struct silt_exchange *x, silt_slice bytes)
{
    uint64_t sent = 0;
    if (x->stage == SILT_EXCHANGE_TUNNEL) {
        if (silt_flow_forward(x->up->watch.fd, &x->to_up, bytes, &sent) < 0)
            silt_visitor_cut(x->visitor);
        return;
    }
    if (!feed(x, &bytes))
        return;
    silt_buf_add(&x->visitor->in, bytes); /* the beginning of the next request */
    flush_up(x);
}

static size_t room_for(struct silt_exchange *x, enum silt_guest_way way)
{
    size_t room = silt_guest_allow(x->route->guest, way, silt_visitor_piece(x->visitor->all));
    if (room > 0)
        return room;
    x->throttled[way] = true;
    silt_guest_wait(x->route->guest, &x->tokens);
    return 0;
}

void silt_pass_on_visitor(struct silt_exchange *x)
{
    struct silt_visitor *v = x->visitor;
    if (!reads_visitor(x)) {
        v->noisy = true;
        return;
    }
    size_t room = room_for(x, SILT_GUEST_UP);
    if (room == 0)
        return;
    ssize_t n = silt_visitor_recv(v, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        on_visitor_end(x, n < 0);
        return;
    }
    x->active_ms = v->all->loop->now_ms;
    silt_guest_spend(x->route->guest, SILT_GUEST_UP, (size_t)n);
    on_visitor_bytes(x, (silt_slice){silt_visitor_room, (size_t)n});
}

/* To the visitor */

static void tell_head(struct silt_exchange *x, const struct silt_http_head *h)
{
    struct silt_visitor *v = x->visitor;
    struct silt_heads_answer a = {.as = x->as,
                                  .flags = x->flags,
                                  .close = v->last,
                                  .old = x->keeps,
                                  .cookie = h->status >= 200 ? silt_buf_slice(&x->cookie) : (silt_slice){NULL, 0}};
    silt_heads_answer(&v->out, h, &a);
}

static void on_interim(struct silt_exchange *x, const struct silt_http_head *h)
{
    bool wanted = h->status != 100 || x->expects;
    if (wanted && !x->old)
        tell_head(x, h);
}

static void on_switched(struct silt_exchange *x, const struct silt_http_head *h)
{
    x->told = true;
    x->visitor->last = true;
    x->as = SILT_BODY_TO_END;
    tell_head(x, h);
    x->stage = SILT_EXCHANGE_TUNNEL;
    (void)feed_kept(x);
}

static void on_final(struct silt_exchange *x, const struct silt_http_head *h)
{
    struct silt_visitor *v = x->visitor;
    x->answer = silt_body_of_answer(h, x->head_only);
    x->as = x->answer.kind;
    if (x->as == SILT_BODY_CHUNKED || x->as == SILT_BODY_TO_END)
        x->as = x->old ? SILT_BODY_TO_END : SILT_BODY_CHUNKED;
    if (x->as == SILT_BODY_TO_END) {
        v->last = true;
        x->keeps = false;
    }
    x->up_reusable = !h->close && x->answer.kind != SILT_BODY_TO_END;
    tell_head(x, h);
    x->told = true;
}

/* One head; 0: not complete, -1: it is over. */
static int take_head(struct silt_exchange *x, silt_slice *in)
{
    static struct silt_http_head h;
    int len = silt_http_parse(&h, *in, true);
    if (len == 0)
        return 0;
    if (len < 0 || (h.status == 101 && !x->upgrade)) {
        silt_exchange_fail(x, SILT_PAGE_NOT_HTTP);
        return -1;
    }
    if (h.status == 101)
        on_switched(x, &h);
    else if (h.status < 200)
        on_interim(x, &h);
    else
        on_final(x, &h);
    if (x->visitor->out.broken) { /* more of these than anybody needs */
        silt_visitor_cut(x->visitor);
        return -1;
    }
    in->data += len;
    in->len -= (size_t)len;
    return 1;
}

static int cut(struct silt_exchange *x)
{
    silt_visitor_cut(x->visitor);
    return -1;
}

/* -1: it is over. */
static int put_down(struct silt_exchange *x, silt_slice data)
{
    struct silt_visitor *v = x->visitor;
    if (x->as == SILT_BODY_CHUNKED || v->out.len > 0)
        silt_body_put(x->as, &v->out, data);
    else if (silt_visitor_send(v, data) < 0)
        return cut(x);
    return v->out.broken ? cut(x) : 0; /* it was filled by heads */
}

static int take_body(struct silt_exchange *x, silt_slice *in)
{
    silt_slice data;
    for (;;) {
        switch (silt_body_next(&x->answer, in, &data)) {
        case SILT_HTTP_CHUNK_BAD:
            return cut(x);
        case SILT_HTTP_CHUNK_MORE:
            return 0;
        case SILT_HTTP_CHUNK_DATA:
            if (put_down(x, data) < 0)
                return -1;
            break;
        case SILT_HTTP_CHUNK_END:
            silt_body_end(x->as, &x->visitor->out);
            if (x->visitor->out.broken)
                return cut(x);
            x->answer_done = true;
            return 0;
        }
    }
}

/* -1: it is over. */
static int take_answer(struct silt_exchange *x, silt_slice *in)
{
    int r = 1;
    while (r > 0 && x->stage == SILT_EXCHANGE_PASSING && !x->told)
        r = take_head(x, in);
    if (r > 0 && x->stage == SILT_EXCHANGE_PASSING)
        r = take_body(x, in);
    else if (r > 0)
        r = put_down(x, *in);
    return r;
}

/* The answer is complete: so is the exchange, whatever else the visitor wanted to say. */
static void on_answered(struct silt_exchange *x, silt_slice rest)
{
    if (rest.len > 0)
        x->up_reusable = false; /* it says more than it was asked for */
    if (silt_visitor_flush(x->visitor) < 0)
        silt_visitor_cut(x->visitor);
    else
        silt_exchange_over(x);
}

static void on_answer_bytes(struct silt_exchange *x, silt_slice bytes)
{
    bool kept = x->from_up.len > 0;
    x->answered = true;
    if (kept) {
        bool line = memchr(bytes.data, '\n', bytes.len) != NULL; /* only then there can be more to see */
        silt_buf_add(&x->from_up, bytes);
        if (!line && x->from_up.len < SILT_HTTP_HEAD_MAX)
            return;
        bytes = silt_buf_slice(&x->from_up);
    }
    if (x->stage == SILT_EXCHANGE_TUNNEL || x->told) {
        if ((x->stage == SILT_EXCHANGE_TUNNEL ? put_down(x, bytes) : take_body(x, &bytes)) < 0)
            return;
    } else {
        size_t before = bytes.len;
        if (take_answer(x, &bytes) < 0)
            return;
        bool unfinished = x->stage == SILT_EXCHANGE_PASSING && !x->told;
        if (kept && unfinished)
            silt_buf_drop(&x->from_up, before - bytes.len);
        else if (kept && bytes.len == 0)
            silt_buf_fini(&x->from_up);
        else if (kept)
            silt_buf_clear(&x->from_up);
        else if (unfinished)
            silt_buf_add(&x->from_up, bytes);
    }
    if (x->answer_done)
        on_answered(x, bytes);
    else if (x->visitor->out.len > 0 && silt_visitor_flush(x->visitor) < 0)
        silt_visitor_cut(x->visitor);
}

static void on_up_end(struct silt_exchange *x, bool broken)
{
    if (x->stage == SILT_EXCHANGE_TUNNEL) {
        if (broken)
            silt_visitor_cut(x->visitor);
        x->up_ended = true;
        return;
    }
    x->up_ended = true;
    if (x->told && x->answer.kind == SILT_BODY_TO_END && !broken) {
        silt_body_end(x->as, &x->visitor->out);
        x->answer_done = true;
        on_answered(x, (silt_slice){NULL, 0});
    } else if (x->told) {
        silt_visitor_cut(x->visitor);
    } else {
        x->up_ended = false;
        silt_exchange_lost(x, false);
    }
}

static bool reads_up(const struct silt_exchange *x)
{
    return x->visitor->out.len == 0 && !x->up_ended && !x->throttled[SILT_GUEST_DOWN];
}

static void read_up(struct silt_exchange *x)
{
    size_t room = room_for(x, SILT_GUEST_DOWN);
    if (room == 0)
        return;
    ssize_t n = recv(x->up->watch.fd, silt_visitor_room, room, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0 && (errno == ECONNREFUSED || errno == ENOTCONN) && !x->reused && !x->answered) {
        silt_exchange_lost(x, true);
        return;
    }
    if (n <= 0) {
        on_up_end(x, n < 0);
        return;
    }
    x->active_ms = x->visitor->all->loop->now_ms;
    silt_guest_spend(x->route->guest, SILT_GUEST_DOWN, (size_t)n);
    on_answer_bytes(x, (silt_slice){silt_visitor_room, (size_t)n});
}

static void on_upstream(struct silt_upstream *u, uint32_t events)
{
    struct silt_exchange *x = u->owner;
    struct silt_visitor *v = x->visitor;
    if (x->to_up.len > 0 && (events & (EPOLLOUT | EPOLLERR)) != 0)
        flush_up(x);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && reads_up(x))
        read_up(x);
    else if ((events & EPOLLERR) != 0 && !is_over(x) && x->up_ended)
        silt_visitor_cut(v);
    silt_visitor_settle(v);
}

static void on_tokens(struct silt_guest_wait *w)
{
    struct silt_exchange *x = silt_container_of(w, struct silt_exchange, tokens);
    x->throttled[SILT_GUEST_UP] = x->throttled[SILT_GUEST_DOWN] = false;
    silt_visitor_settle(x->visitor);
}

void silt_pass_attach(struct silt_exchange *x, struct silt_upstream *u, bool reused)
{
    x->up = u;
    x->reused = reused;
    x->stage = SILT_EXCHANGE_PASSING;
    x->tokens.on_tokens = on_tokens;
    u->owner = x;
    u->on_ready = on_upstream;
    silt_visitor_deadline(x->visitor, silt_exchange_check_ms(x));
    silt_buf_add(&x->to_up, silt_buf_slice(&x->head));
    if (!feed_kept(x))
        return;
    flush_up(x);
}

void silt_pass_on_written(struct silt_exchange *x)
{
    x->active_ms = x->visitor->all->loop->now_ms;
}

/* A side of a tunnel that said its last word has been heard: the other one is told. */
static void pass_ends_on(struct silt_exchange *x)
{
    struct silt_visitor *v = x->visitor;
    if (v->halved && !x->up_shut && x->to_up.len == 0) {
        (void)shutdown(x->up->watch.fd, SHUT_WR);
        x->up_shut = true;
    }
    if (x->up_ended && !x->down_shut && v->out.len == 0) {
        silt_visitor_shut(v);
        x->down_shut = true;
    }
}

void silt_pass_settle(struct silt_exchange *x)
{
    struct silt_visitor *v = x->visitor;
    if (x->stage == SILT_EXCHANGE_TUNNEL) {
        pass_ends_on(x);
        if (x->up_shut && x->down_shut) {
            x->answer_done = true;
            silt_exchange_over(x);
            return;
        }
    }
    uint32_t up = reads_up(x) ? EPOLLIN : 0;
    if (x->to_up.len > 0)
        up |= EPOLLOUT;
    silt_loop_watch(v->all->loop, &x->up->watch, up != 0 ? up : (uint32_t)EPOLLET);
    silt_visitor_watch(v, reads_visitor(x));
}
