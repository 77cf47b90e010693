/* SPDX-License-Identifier: Apache-2.0 */
/* forward: copies a request to the service and its response to the client. */
#include "base/clock.h"
#include "proxy/preview/request.h"
#include "proxy/core/relay.h"

#include <errno.h>

static char piece[SILT_CLIENT_CONN_PIECE]; /* scratch: valid until the next read */

/* To the service */

/* A write error is not final: the service may have answered before it closed. */
void silt_forward_flush(struct silt_proxied_request *x)
{
    uint64_t sent = 0;
    if (!x->up->broken && silt_relay_flush(x->up->watch.fd, &x->to_up, &sent) < 0)
        x->up->broken = true;
    if (x->up->broken)
        silt_buf_clear(&x->to_up);
    if (sent > 0)
        x->active_ms = x->visitor->all->loop->now_ms;
}

static void put_up(struct silt_proxied_request *x, enum silt_body_framing_kind kind,
                   silt_slice data)
{
    uint64_t sent = 0;
    if (x->body == SILT_PROXIED_REQUEST_UNSENT)
        silt_proxied_request_enter_body(x, SILT_PROXIED_REQUEST_SENDING);
    if (x->up->broken)
        return;
    if (kind != SILT_BODY_FRAMING_LENGTH || x->to_up.len > 0)
        silt_body_framing_put(kind, &x->to_up, data);
    else if (silt_relay_forward(x->up->watch.fd, &x->to_up, data, &sent) < 0)
        x->up->broken = true;
}

/* Forwards the request's body; false: the request is over. */
static bool feed(struct silt_proxied_request *x, silt_slice *in)
{
    silt_slice data;
    for (;;) {
        switch (silt_body_framing_next(&x->request, in, &data)) {
        case SILT_HTTP_CHUNK_BAD:
            silt_proxied_request_fail(x, SILT_ERROR_PAGE_MALFORMED);
            return false;
        case SILT_HTTP_CHUNK_MORE:
            return true;
        case SILT_HTTP_CHUNK_DATA:
            put_up(x, x->request.kind, data);
            break;
        case SILT_HTTP_CHUNK_END:
            silt_body_framing_end(x->request.kind, &x->to_up);
            silt_proxied_request_enter_body(x, x->body == SILT_PROXIED_REQUEST_UNSENT
                                                   ? SILT_PROXIED_REQUEST_BODILESS
                                                   : SILT_PROXIED_REQUEST_SENT);
            return true;
        }
    }
}

/* Forwards what was read with the head; false: the request is over. */
static bool feed_kept(struct silt_proxied_request *x)
{
    struct silt_client_conn *v = x->visitor;
    silt_slice in = silt_buf_slice(&v->in);
    if (silt_proxied_request_is_read(x)) /* sent again: an empty body has its end alone */
        silt_body_framing_end(x->request.kind, &x->to_up);
    else if (!feed(x, &in))
        return false;
    silt_buf_drop(&v->in, v->in.len - in.len);
    return true;
}

static bool reads_visitor(const struct silt_proxied_request *x)
{
    return x->to_up.len == 0 && !x->throttled[SILT_BANDWIDTH_UP] && !x->up->broken
           && !silt_proxied_request_is_read(x) && !silt_client_conn_is_chatty(x->visitor);
}

static void on_visitor_bytes(struct silt_proxied_request *x, silt_slice bytes)
{
    if (!feed(x, &bytes))
        return;
    silt_buf_add(&x->visitor->in, bytes); /* the beginning of the next request */
    silt_forward_flush(x);
}

size_t silt_forward_room(struct silt_proxied_request *x, enum silt_bandwidth_way way)
{
    size_t room =
        silt_bandwidth_allow(x->route->guest, way, silt_client_conn_piece(x->visitor->all));
    x->throttled[way] = room == 0;
    if (room == 0)
        silt_bandwidth_wait(x->route->guest, &x->tokens);
    return room < sizeof(piece) ? room : sizeof(piece);
}

void silt_forward_on_visitor(struct silt_proxied_request *x)
{
    struct silt_client_conn *v = x->visitor;
    if (!reads_visitor(x)) {
        v->noisy = true;
        return;
    }
    size_t room = silt_forward_room(x, SILT_BANDWIDTH_UP);
    if (room == 0)
        return;
    ssize_t n = silt_client_conn_recv(v, piece, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        silt_client_conn_cut(v); /* an incomplete request is dropped */
        return;
    }
    x->active_ms = v->all->loop->now_ms;
    silt_bandwidth_spend(x->route->guest, SILT_BANDWIDTH_UP, (size_t)n);
    on_visitor_bytes(x, (silt_slice){piece, (size_t)n});
}

/* To the client */

static void tell_head(struct silt_proxied_request *x, const struct silt_http_head *h)
{
    struct silt_client_conn *v = x->visitor;
    struct silt_header_rewrite_answer a = {.as = x->as,
                                           .flags = x->flags,
                                           .close = v->last,
                                           .old = x->keeps,
                                           .cookie = h->status >= 200 ? silt_buf_slice(&x->cookie)
                                                                      : (silt_slice){NULL, 0}};
    silt_header_rewrite_answer(&v->out, h, &a);
}

static void on_interim(struct silt_proxied_request *x, const struct silt_http_head *h)
{
    bool wanted = h->status != 100 || x->expects;
    if (wanted && !x->old)
        tell_head(x, h);
}

static void on_switched(struct silt_proxied_request *x, const struct silt_http_head *h)
{
    silt_proxied_request_enter_response(x, SILT_PROXIED_RESPONSE_TOLD);
    x->visitor->last = true;
    x->as = SILT_BODY_FRAMING_TO_END;
    tell_head(x, h);
    silt_upgrade_start(x);
}

static void on_final(struct silt_proxied_request *x, const struct silt_http_head *h)
{
    struct silt_client_conn *v = x->visitor;
    x->answer = silt_body_framing_of_answer(h, x->head_only);
    x->as = x->answer.kind;
    if (x->as == SILT_BODY_FRAMING_CHUNKED || x->as == SILT_BODY_FRAMING_TO_END)
        x->as = x->old ? SILT_BODY_FRAMING_TO_END : SILT_BODY_FRAMING_CHUNKED;
    if (x->as == SILT_BODY_FRAMING_TO_END) {
        v->last = true;
        x->keeps = false;
    }
    x->up->reusable = !h->close && x->answer.kind != SILT_BODY_FRAMING_TO_END;
    tell_head(x, h);
    silt_proxied_request_enter_response(x, SILT_PROXIED_RESPONSE_TOLD);
}

/* Parses one head. 0: incomplete, -1: the request is over. */
static int take_head(struct silt_proxied_request *x, silt_slice *in)
{
    static struct silt_http_head h;
    int len = silt_http_parse(&h, *in, SILT_HTTP_RESPONSE);
    if (len == 0)
        return 0;
    if (len < 0 || (h.status == 101 && !x->upgrade)) {
        silt_proxied_request_fail(x, SILT_ERROR_PAGE_NOT_HTTP);
        return -1;
    }
    if (h.status == 101)
        on_switched(x, &h);
    else if (h.status < 200)
        on_interim(x, &h);
    else
        on_final(x, &h);
    if (x->visitor->out.broken) { /* too many interim responses */
        silt_client_conn_cut(x->visitor);
        return -1;
    }
    in->data += len;
    in->len -= (size_t)len;
    return 1;
}

static int cut(struct silt_proxied_request *x)
{
    silt_client_conn_cut(x->visitor);
    return -1;
}

/* -1: the request is over. */
static int put_down(struct silt_proxied_request *x, silt_slice data)
{
    struct silt_client_conn *v = x->visitor;
    if (x->as == SILT_BODY_FRAMING_CHUNKED || v->out.len > 0)
        silt_body_framing_put(x->as, &v->out, data);
    else if (silt_client_conn_send(v, data) < 0)
        return cut(x);
    return v->out.broken ? cut(x) : 0; /* interim heads filled it */
}

static int take_body(struct silt_proxied_request *x, silt_slice *in)
{
    silt_slice data;
    for (;;) {
        switch (silt_body_framing_next(&x->answer, in, &data)) {
        case SILT_HTTP_CHUNK_BAD:
            return cut(x);
        case SILT_HTTP_CHUNK_MORE:
            return 0;
        case SILT_HTTP_CHUNK_DATA:
            if (put_down(x, data) < 0)
                return -1;
            break;
        case SILT_HTTP_CHUNK_END:
            silt_body_framing_end(x->as, &x->visitor->out);
            if (x->visitor->out.broken)
                return cut(x);
            silt_proxied_request_enter_response(x, SILT_PROXIED_RESPONSE_COMPLETE);
            return 0;
        }
    }
}

/* -1: the request is over. */
static int take_answer(struct silt_proxied_request *x, silt_slice *in)
{
    int r = 1;
    while (r > 0 && x->response < SILT_PROXIED_RESPONSE_TOLD)
        r = take_head(x, in);
    if (r > 0 && x->stage == SILT_PROXIED_REQUEST_PASSING)
        r = take_body(x, in);
    else if (r > 0)
        r = put_down(x, *in);
    return r;
}

/* A complete response ends the request, even if the client is still sending its body. */
static void on_answered(struct silt_proxied_request *x, silt_slice rest)
{
    if (rest.len > 0)
        x->up->reusable = false; /* bytes after the response */
    if (silt_client_conn_flush(x->visitor) < 0)
        silt_client_conn_cut(x->visitor);
    else
        silt_proxied_request_over(x);
}

static void on_answer_bytes(struct silt_proxied_request *x, silt_slice bytes)
{
    bool kept = x->from_up.len > 0;
    if (x->response == SILT_PROXIED_RESPONSE_SILENT)
        silt_proxied_request_enter_response(x, SILT_PROXIED_RESPONSE_HEARD);
    if (kept) {
        bool line = memchr(bytes.data, '\n', bytes.len)
                    != NULL; /* only then can the head have become complete */
        silt_buf_add(&x->from_up, bytes);
        if (!line && x->from_up.len < SILT_HTTP_HEAD_MAX)
            return;
        bytes = silt_buf_slice(&x->from_up);
    }
    if (x->response == SILT_PROXIED_RESPONSE_TOLD) {
        if (take_body(x, &bytes) < 0)
            return;
    } else {
        size_t before = bytes.len;
        if (take_answer(x, &bytes) < 0)
            return;
        bool unfinished = x->response < SILT_PROXIED_RESPONSE_TOLD;
        if (kept && unfinished)
            silt_buf_drop(&x->from_up, before - bytes.len);
        else if (kept && bytes.len == 0)
            silt_buf_fini(&x->from_up);
        else if (kept)
            silt_buf_clear(&x->from_up);
        else if (unfinished)
            silt_buf_add(&x->from_up, bytes);
    }
    if (x->response == SILT_PROXIED_RESPONSE_COMPLETE)
        on_answered(x, bytes);
    else if (x->visitor->out.len > 0 && silt_client_conn_flush(x->visitor) < 0)
        silt_client_conn_cut(x->visitor);
}

static void on_up_end(struct silt_proxied_request *x, bool broken)
{
    if (x->response < SILT_PROXIED_RESPONSE_TOLD) {
        silt_proxied_request_lost(x, false);
    } else if (x->answer.kind == SILT_BODY_FRAMING_TO_END && !broken) {
        silt_body_framing_end(x->as, &x->visitor->out);
        silt_proxied_request_enter_response(x, SILT_PROXIED_RESPONSE_COMPLETE);
        on_answered(x, (silt_slice){NULL, 0});
    } else {
        silt_client_conn_cut(x->visitor);
    }
}

static bool reads_up(const struct silt_proxied_request *x)
{
    return x->visitor->out.len == 0 && !x->throttled[SILT_BANDWIDTH_DOWN];
}

static void read_up(struct silt_proxied_request *x)
{
    size_t room = silt_forward_room(x, SILT_BANDWIDTH_DOWN);
    if (room == 0)
        return;
    ssize_t n = recv(x->up->watch.fd, piece, room, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0 && (errno == ECONNREFUSED || errno == ENOTCONN) && !x->up->reused
        && x->response == SILT_PROXIED_RESPONSE_SILENT) {
        silt_proxied_request_lost(x, true);
        return;
    }
    if (n <= 0) {
        on_up_end(x, n < 0);
        return;
    }
    x->active_ms = x->visitor->all->loop->now_ms;
    silt_bandwidth_spend(x->route->guest, SILT_BANDWIDTH_DOWN, (size_t)n);
    on_answer_bytes(x, (silt_slice){piece, (size_t)n});
}

static void on_upstream(struct silt_upstream *u, uint32_t events)
{
    struct silt_proxied_request *x = u->owner;
    struct silt_client_conn *v = x->visitor;
    if (x->to_up.len > 0 && (events & (EPOLLOUT | EPOLLERR)) != 0)
        silt_forward_flush(x);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && reads_up(x))
        read_up(x);
    silt_client_conn_settle(v);
}

static void on_tokens(struct silt_bandwidth_wait *w)
{
    struct silt_proxied_request *x = silt_outer(w, struct silt_proxied_request, tokens);
    x->throttled[SILT_BANDWIDTH_UP] = x->throttled[SILT_BANDWIDTH_DOWN] = false;
    for (int i = 0; i < SILT_RELAY_ENDS; i++)
        x->relay.sides[i].paused = false;
    silt_client_conn_settle(x->visitor);
}

void silt_forward_attach(struct silt_proxied_request *x, struct silt_upstream *u)
{
    x->up = u;
    silt_proxied_request_enter(x, SILT_PROXIED_REQUEST_PASSING);
    x->tokens.on_tokens = on_tokens;
    u->owner = x;
    u->on_ready = on_upstream;
    silt_client_conn_deadline(x->visitor, silt_proxied_request_check_ms(x));
    silt_buf_add(&x->to_up, silt_buf_slice(&x->head));
    if (!feed_kept(x))
        return;
    silt_forward_flush(x);
}

void silt_forward_on_written(struct silt_proxied_request *x)
{
    x->active_ms = x->visitor->all->loop->now_ms;
}

void silt_forward_watch(struct silt_proxied_request *x, bool reads)
{
    uint32_t events = reads ? EPOLLIN : 0;
    if (x->to_up.len > 0)
        events |= EPOLLOUT;
    silt_loop_watch(x->visitor->all->loop, &x->up->watch,
                    events != 0 ? events : (uint32_t)EPOLLET); /* errors are still reported */
}

void silt_forward_settle(struct silt_proxied_request *x)
{
    silt_forward_watch(x, reads_up(x));
    silt_client_conn_watch(x->visitor, reads_visitor(x));
}
