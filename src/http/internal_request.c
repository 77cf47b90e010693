/* SPDX-License-Identifier: Apache-2.0 */
#include "http/internal_request.h"
#include "base/clock.h"
#include "base/own.h"
#include "http/conn.h"

#include <assert.h>
#include <stdlib.h>

enum { ARENA_MAX = 192 * 1024 * 1024, TOO_LARGE = 413, TOO_MANY = 503 };

struct silt_http_internal {
    struct silt_http_exchange exchange;
    struct silt_http_server *server;      /* borrowed */
    struct silt_http_internal_sink *sink; /* borrowed */
    struct silt_timer again;              /* the handler has unpaused it */
    struct silt_grave grave;
    silt_slice body; /* in the arena: not yet delivered */
    size_t counted;  /* its share of server->body_bytes */
    uint64_t fed;    /* bytes so far of a streamed body */
    bool is_fed;     /* its body is streamed */
    bool crowded;    /* it exceeds the memory limit for bodies */
    bool delivered;  /* completely */
    bool over;       /* answered or left: buried */
};

static void free_inner(struct silt_grave *g)
{
    struct silt_http_internal *i = silt_outer(g, struct silt_http_internal, grave);
    silt_arena_fini(&i->exchange.arena);
    free(i);
}

static void finish(struct silt_http_internal *i, int status)
{
    const struct silt_http_hooks *hooks = &i->server->hooks;
    struct silt_http_exchange *x = &i->exchange;
    assert(!i->over);
    i->over = true;
    if (hooks->on_answered != NULL)
        hooks->on_answered(hooks->context, &x->request, status, silt_clock_us() - x->started_us);
    i->server->body_bytes -= i->counted;
    silt_loop_cancel(i->server->loop, &i->again);
    silt_loop_bury(i->server->loop, &i->grave);
}

static void refuse(struct silt_http_internal *i, int status)
{
    const struct silt_http_hooks *hooks = &i->server->hooks;
    struct silt_buf *b = &i->server->refusal;
    struct silt_http_request *r = &i->exchange.request;
    if (r->on_gone != NULL)
        r->on_gone(r);
    silt_buf_clear(b);
    hooks->on_refusal(hooks->context, status, b);
    silt_http_internal_reply(i, status, SILT_LIT("application/json"), silt_buf_slice(b));
}

/* In pieces of the size a connection would deliver. */
static void deliver_pieces(struct silt_http_internal *i)
{
    struct silt_http_exchange *x = &i->exchange;
    while (!i->over && !i->delivered && !x->paused) {
        silt_slice piece = i->body;
        if (piece.len > SILT_HTTP_READ_SIZE)
            piece.len = SILT_HTTP_READ_SIZE;
        i->body.data += piece.len;
        i->body.len -= piece.len;
        i->delivered = i->body.len == 0;
        x->on_piece(&x->request, piece, i->delivered);
    }
}

/* A handler that collects a streamed body has no room for it. */
static void deliver_room(struct silt_http_internal *i)
{
    if (i->exchange.wish != SILT_HTTP_CONSUME)
        refuse(i, TOO_LARGE);
    else if (silt_http_internal_wants(i))
        i->sink->room(i->sink);
}

bool silt_http_internal_wants(const struct silt_http_internal *i)
{
    return !i->over && !i->delivered && i->is_fed && i->exchange.wish == SILT_HTTP_CONSUME
           && !i->exchange.paused;
}

void silt_http_internal_feed(struct silt_http_internal *i, silt_slice piece, bool end)
{
    struct silt_http_exchange *x = &i->exchange;
    assert(silt_http_internal_wants(i) && piece.len <= SILT_HTTP_FEED_MAX);
    i->fed += piece.len;
    i->delivered = end;
    if (i->fed > x->body_max)
        refuse(i, TOO_LARGE);
    else
        x->on_piece(&x->request, piece, end);
}

bool silt_http_internal_size(const struct silt_http_internal *i, uint64_t *ret)
{
    *ret = i->exchange.size_left;
    return i->exchange.sized;
}

void silt_http_internal_deliver(struct silt_http_internal *i)
{
    struct silt_http_exchange *x = &i->exchange;
    if (i->over || i->delivered || x->wish == SILT_HTTP_UNDECIDED)
        return;
    if (i->is_fed) {
        deliver_room(i);
        return;
    }
    if (x->head.length > x->body_max) {
        refuse(i, TOO_LARGE);
    } else if (i->crowded) {
        refuse(i, TOO_MANY);
    } else if (x->wish == SILT_HTTP_CONSUME) {
        deliver_pieces(i);
    } else {
        i->delivered = true;
        x->request.body = i->body;
        x->on_body(&x->request);
    }
}

static void on_again(struct silt_timer *t)
{
    silt_http_internal_deliver(silt_outer(t, struct silt_http_internal, again));
}

void silt_http_internal_resume(struct silt_http_internal *i)
{
    if (!i->delivered && !i->over)
        silt_loop_after(i->server->loop, &i->again, 0);
}

/* The same limit as for bodies of connections. */
static void count_body(struct silt_http_internal *i)
{
    struct silt_http_server *s = i->server;
    uint64_t more = i->body.len <= SILT_HTTP_SMALL_BODY ? SILT_HTTP_BODIES_MAX : 0;
    i->counted = i->body.len;
    s->body_bytes += i->counted;
    i->crowded = s->body_bytes > SILT_HTTP_BODIES_MAX + more;
}

static int parse(struct silt_http_internal *i, silt_slice head, silt_slice body,
                 struct silt_error *e)
{
    struct silt_http_exchange *x = &i->exchange;
    char *text = silt_arena_dup(&x->arena, head);
    char *bytes = text != NULL ? silt_arena_dup(&x->arena, body) : NULL;
    if (bytes == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for a request of %zu bytes",
                         head.len + body.len);
    int n = silt_http_parse(&x->head, (silt_slice){text, head.len}, SILT_HTTP_REQUEST);
    if (n != (int)head.len || x->head.chunked != i->is_fed || x->head.length != body.len)
        return silt_fail(e, SILT_INVALID, "the request is malformed");
    i->body = (silt_slice){bytes, body.len};
    return 0;
}

static struct silt_http_internal *make(struct silt_http_server *s,
                                       struct silt_http_internal_sink *sink)
{
    struct silt_http_internal *i = calloc(1, sizeof(*i));
    if (i == NULL)
        abort();
    struct silt_http_exchange *x = &i->exchange;
    i->server = s;
    i->sink = sink;
    i->again.on_time = on_again;
    i->grave.free = free_inner;
    silt_arena_init(&x->arena, ARENA_MAX);
    x->inner = i;
    x->request.head = &x->head;
    x->request.arena = &x->arena;
    x->started_us = silt_clock_us();
    return i;
}

struct silt_http_internal *silt_http_internal_new(struct silt_http_server *s, silt_slice head,
                                                  silt_slice body,
                                                  struct silt_http_internal_sink *sink,
                                                  struct silt_error *e)
{
    struct silt_http_internal *i = make(s, sink);
    if (parse(i, head, body, e) < 0) {
        free_inner(&i->grave);
        return NULL;
    }
    count_body(i);
    return i;
}

struct silt_http_internal *silt_http_internal_new_fed(struct silt_http_server *s, silt_slice head,
                                                      struct silt_http_internal_sink *sink,
                                                      struct silt_error *e)
{
    struct silt_http_internal *i = make(s, sink);
    i->is_fed = true;
    if (parse(i, head, (silt_slice){NULL, 0}, e) < 0) {
        free_inner(&i->grave);
        return NULL;
    }
    return i;
}

struct silt_http_request *silt_http_internal_request(struct silt_http_internal *i)
{
    return &i->exchange.request;
}

void silt_http_internal_drain(struct silt_http_internal *i)
{
    struct silt_http_request *r = &i->exchange.request;
    if (!i->exchange.full)
        return;
    i->exchange.full = false;
    if (r->on_drain != NULL)
        r->on_drain(r);
}

void silt_http_internal_leave(struct silt_http_internal *i)
{
    struct silt_http_request *r = &i->exchange.request;
    if (r->on_gone != NULL)
        r->on_gone(r);
    finish(i, i->exchange.streaming ? i->exchange.status : 499);
}

/* The handler's calls. */

void silt_http_internal_reply(struct silt_http_internal *i, int status, silt_slice type,
                              silt_slice body)
{
    assert(!i->exchange.streaming);
    i->sink->reply(i->sink, status, type, body);
    finish(i, status);
}

void silt_http_internal_begin(struct silt_http_internal *i, int status, silt_slice type)
{
    assert(!i->exchange.streaming);
    i->exchange.streaming = true;
    i->exchange.status = status;
    i->sink->begin(i->sink, status, type);
}

void silt_http_internal_write(struct silt_http_internal *i, silt_slice bytes)
{
    if (bytes.len > 0)
        i->sink->write(i->sink, bytes);
    (void)silt_http_internal_pending(i);
}

/* Other responses may have filled the outer connection: the handler then waits for on_drain as
 * well. */
size_t silt_http_internal_pending(struct silt_http_internal *i)
{
    size_t pending = i->sink->pending(i->sink);
    i->exchange.full = i->exchange.full || pending >= SILT_HTTP_MARK;
    return pending;
}

void silt_http_internal_end(struct silt_http_internal *i, bool whole)
{
    i->sink->end(i->sink, whole);
    finish(i, i->exchange.streaming ? i->exchange.status : 500);
}
