/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/exchange.h"
#include "base/clock.h"
#include "base/without.h"

#include <stdlib.h>

enum {
    GRACE_MS = 5000,   /* for siltd, beside the time for the port */
    CHECK_MS = 15000,  /* how often a passing exchange is looked after */
    STALL_MS = 120000, /* how long somebody may not take what waits for them */
    FRESH_MS = 1000,   /* how long a socket may be idle for a request that cannot be repeated, and a repeatable one unanswered to be repeated */
    ATTEMPTS = 3,
    ANY_AGE_MS = 60000,
    COOKIE_MAX = 1024,
};

/* The head that was parsed last, and whose it is. */
static struct {
    const struct silt_exchange *of;
    struct silt_http_head head;
    struct silt_host host;
} scratch;

/* The end */

static void free_exchange(struct silt_grave *g)
{
    struct silt_exchange *x = silt_container_of(g, struct silt_exchange, grave);
    silt_buf_fini(&x->head);
    silt_buf_fini(&x->to_up);
    silt_buf_fini(&x->from_up);
    silt_buf_fini(&x->cookie);
    free(x);
}

static void let_go(struct silt_exchange *x, bool park)
{
    struct silt_upstream *u = silt_take_ptr(x->up);
    struct silt_route *route = silt_take_ptr(x->route);
    if (u != NULL && park && route != NULL)
        silt_upstream_park(u, route);
    else if (u != NULL)
        silt_upstream_close(u, !x->answer_done);
    silt_routes_leave(&x->wait);
    silt_talk_leave(x->visitor->all->talk, &x->dial);
    silt_list_remove(&x->tokens.link);
    if (route != NULL)
        silt_route_unuse(route, &x->user);
}

void silt_exchange_free(struct silt_exchange *x)
{
    if (scratch.of == x)
        scratch.of = NULL;
    let_go(x, false);
    silt_loop_bury(x->visitor->all->loop, &x->grave);
}

static void end(struct silt_exchange *x, bool park)
{
    struct silt_visitor *v = x->visitor;
    let_go(x, park);
    if (x->head_len > 0) /* a page came before the head was used */
        silt_buf_drop(&v->in, x->head_len);
    if (!x->request_done)
        v->last = true; /* nobody reads what comes now */
    v->exchange = NULL;
    silt_exchange_free(x);
    silt_visitor_answered(v);
}

void silt_exchange_over(struct silt_exchange *x)
{
    bool park = x->up_reusable && x->request_done && x->to_up.len == 0 && !x->up_broken && !x->up_ended;
    end(x, park);
}

void silt_exchange_page(struct silt_exchange *x, enum silt_page_kind kind, const char *text)
{
    struct silt_visitor *v = x->visitor;
    v->last = v->last || !x->request_done;
    struct silt_page page = {.kind = kind,
                             .status = 400,
                             .port = x->port,
                             .wait_ms = v->all->settings.wait_ms,
                             .text = text,
                             .html = x->html,
                             .head_only = x->head_only,
                             .close = v->last,
                             .old = x->keeps};
    silt_page_write(&v->out, &page);
    end(x, false);
}

void silt_exchange_fail(struct silt_exchange *x, enum silt_page_kind kind)
{
    if (x->told)
        silt_visitor_cut(x->visitor);
    else
        silt_exchange_page(x, kind, NULL);
}

static void on_drop(struct silt_route_user *u)
{
    struct silt_exchange *x = silt_container_of(u, struct silt_exchange, user);
    struct silt_visitor *v = x->visitor;
    x->route = NULL;
    silt_exchange_fail(x, SILT_PAGE_UNKNOWN);
    silt_visitor_settle(v);
}

/* Asking for a socket */

static int64_t left_ms(const struct silt_exchange *x)
{
    return x->began_ms + x->visitor->all->settings.wait_ms - silt_clock_ms();
}

static bool fill_dial(struct silt_talk_ask *a, struct silt_preview_request *q)
{
    const struct silt_exchange *x = silt_container_of(a, struct silt_exchange, dial);
    int64_t left = left_ms(x);
    if (x->route == NULL || !x->route->sure)
        return false; /* it is being found again */
    q->type = SILT_PREVIEW_DIAL;
    q->route = x->route->number;
    q->body.dial.wait_ms = left > 0 ? (uint32_t)left : 0;
    return true;
}

static void on_dialed(struct silt_talk_ask *a, const struct silt_preview_answer *n, int *fd)
{
    struct silt_exchange *x = silt_container_of(a, struct silt_exchange, dial);
    struct silt_visitor *v = x->visitor;
    uint32_t type = n->type < SILT_PREVIEW_SAY_MAX ? n->type : SILT_PREVIEW_ENDED;
    switch ((enum silt_preview_say)type) {
    case SILT_PREVIEW_SOCKET:
        if (*fd < 0)
            silt_exchange_page(x, SILT_PAGE_BROKEN, NULL);
        else if (!silt_pool_has_room(&v->all->pool))
            silt_exchange_page(x, SILT_PAGE_BUSY, NULL);
        else
            silt_pass_attach(x, silt_upstream_new(&v->all->pool, silt_take_fd(fd)), false);
        break;
    case SILT_PREVIEW_UNKNOWN:
        silt_exchange_page(x, SILT_PAGE_UNKNOWN, NULL);
        break;
    case SILT_PREVIEW_CLOSED:
        silt_exchange_page(x, SILT_PAGE_CLOSED, NULL);
        break;
    case SILT_PREVIEW_BUSY:
        silt_exchange_page(x, SILT_PAGE_BUSY, NULL);
        break;
    case SILT_PREVIEW_ENDED:
    case SILT_PREVIEW_LOCKED:
    case SILT_PREVIEW_ROUTE:
    case SILT_PREVIEW_DROP:
    case SILT_PREVIEW_HAND:
    case SILT_PREVIEW_SAY_MAX:
        silt_exchange_page(x, SILT_PAGE_ENDED, n->type == SILT_PREVIEW_ENDED ? n->body.text : NULL);
        break;
    }
    silt_visitor_settle(v);
}

static void dial(struct silt_exchange *x)
{
    x->stage = SILT_EXCHANGE_DIALING;
    x->attempts++;
    silt_visitor_deadline(x->visitor, (left_ms(x) > 0 ? left_ms(x) : 0) + GRACE_MS);
    silt_talk_ask(x->visitor->all->talk, &x->dial);
}

static void connect_to(struct silt_exchange *x)
{
    struct silt_upstream *idle = silt_upstream_take(x->route, x->repeatable ? ANY_AGE_MS : FRESH_MS);
    if (idle != NULL)
        silt_pass_attach(x, idle, true);
    else
        dial(x);
}

/* A socket that was idle may have been closed just when we wrote to it. Whoever has heard the request works on it for longer, or says something: it
 * is not asked twice. */
static bool is_unheard(const struct silt_exchange *x)
{
    return x->reused && x->repeatable && !x->body_sent && silt_clock_ms() - x->active_ms < FRESH_MS;
}

void silt_exchange_lost(struct silt_exchange *x, bool refused)
{
    bool again = refused ? left_ms(x) > 0 : is_unheard(x);
    if (x->answered || x->body_sent || !again || x->attempts >= ATTEMPTS || x->route == NULL) {
        silt_exchange_fail(x, refused ? SILT_PAGE_CLOSED : SILT_PAGE_BROKEN);
        return;
    }
    silt_upstream_close(silt_take_ptr(x->up), false);
    silt_buf_clear(&x->to_up);
    x->up_broken = false;
    dial(x);
}

/* Finding the route */

static bool parse_again(struct silt_exchange *x)
{
    struct silt_visitor *v = x->visitor;
    if (scratch.of == x)
        return true;
    scratch.of = x;
    return silt_http_parse(&scratch.head, (silt_slice){v->in.data, x->head_len}, false) > 0
           && silt_host_read(&v->all->settings.rule, &scratch.head, &scratch.host) == 0;
}

/* To the same place without the proof, or with the slash that it lacks. */
static void move(struct silt_exchange *x)
{
    struct silt_visitor *v = x->visitor;
    silt_slice path = scratch.head.path;
    silt_auto_buf to, query;
    silt_buf_init(&to, SILT_HEADS_MAX);
    silt_buf_init(&query, SILT_HEADS_MAX);
    if (path.len > 1 && (path.data[1] == '/' || path.data[1] == '\\'))
        silt_buf_add(&to, SILT_LIT("/.")); /* "//host" would be another host */
    silt_buf_add(&to, path);
    if (scratch.host.unfinished)
        silt_buf_add_byte(&to, '/');
    silt_heads_put_query(&query, scratch.head.query);
    v->last = v->last || !x->request_done;
    struct silt_page_move m = {.to = silt_buf_slice(&to),
                               .query = silt_buf_slice(&query),
                               .cookie = silt_buf_slice(&x->cookie),
                               .close = v->last,
                               .old = x->keeps};
    silt_page_write_move(&v->out, &m);
    end(x, false);
}

static void write_head(struct silt_exchange *x)
{
    struct silt_visitor *v = x->visitor;
    char address[INET6_ADDRSTRLEN];
    silt_visitor_address(&x->from, address);
    struct silt_heads_visit visit = {.host = &scratch.host,
                                     .address = address,
                                     .flags = x->flags,
                                     .port = x->port,
                                     .tls = x->tls,
                                     .upgrade = x->upgrade};
    silt_heads_request(&x->head, &scratch.head, &visit);
    scratch.of = NULL;
    silt_buf_drop(&v->in, x->head_len);
    x->head_len = 0;
}

static void go(struct silt_exchange *x, struct silt_route *route)
{
    struct silt_visitor *v = x->visitor;
    if (route->guest->using >= v->all->settings.connections) {
        silt_exchange_page(x, SILT_PAGE_BUSY, NULL);
        return;
    }
    x->route = route;
    silt_route_use(route, &x->user);
    write_head(x);
    if (x->head.broken)
        silt_exchange_page(x, SILT_PAGE_MALFORMED, NULL);
    else
        connect_to(x);
}

/* A browser sends the cookie along for pages of other hosts too, where those are of the same site, and lets them read what comes through
 * a WebSocket. Such a page has to know a signed URL of its own. */
static bool is_borrowed(const struct silt_exchange *x)
{
    return x->upgrade && !scratch.host.signed_url && silt_http_field(&scratch.head, SILT_LIT("origin")).len > 0
           && !silt_http_is_own(&scratch.head) && !silt_without("preview_origin");
}

static void on_route(struct silt_exchange *x, struct silt_route *route, uint32_t lasts_s)
{
    x->port = route->port;
    if (!parse_again(x)) {
        silt_exchange_page(x, SILT_PAGE_MALFORMED, NULL); /* it was fine before */
        return;
    }
    x->flags = route->flags;
    if (scratch.host.form == SILT_PREVIEW_PATH)
        x->flags |= SILT_PREVIEW_CAGED; /* names by path share an origin, those by host have one each; both lead to the same route */
    bool private = (route->flags & SILT_PREVIEW_PRIVATE) != 0;
    if (scratch.host.signed_url && private)
        silt_heads_put_cookie(&x->cookie, &scratch.host, lasts_s, x->tls);
    if (private && is_borrowed(x)) {
        silt_exchange_page(x, SILT_PAGE_LOCKED, NULL);
        return;
    }
    bool navigates = x->repeatable && x->html && !x->upgrade && scratch.host.signed_url;
    if (navigates || scratch.host.unfinished)
        move(x);
    else
        go(x, route);
}

static void on_found(struct silt_route_wait *w, enum silt_preview_say say, struct silt_route *route, uint32_t lasts_s)
{
    struct silt_exchange *x = silt_container_of(w, struct silt_exchange, wait);
    struct silt_visitor *v = x->visitor;
    if (say == SILT_PREVIEW_ROUTE) {
        on_route(x, route, lasts_s);
    } else if (say == SILT_PREVIEW_LOCKED) {
        silt_exchange_page(x, SILT_PAGE_LOCKED, NULL);
    } else if (say == SILT_PREVIEW_BUSY) {
        silt_exchange_page(x, SILT_PAGE_BUSY, NULL);
    } else {
        silt_guesses_wrong(&v->all->guesses, (const struct sockaddr *)(const void *)&x->from, v->all->loop->now_ms);
        silt_exchange_page(x, SILT_PAGE_UNKNOWN, NULL);
    }
    if (!x->at_once) /* else whoever asked settles */
        silt_visitor_settle(v);
}

/* To the same place by https. */
static void lift(struct silt_exchange *x)
{
    struct silt_visitor *v = x->visitor;
    v->last = v->last || !x->request_done;
    struct silt_page_lift l = {.host = scratch.head.host, .target = scratch.head.target, .close = v->last, .old = x->keeps};
    silt_page_write_lift(&v->out, &l);
    end(x, false);
}

static void find(struct silt_exchange *x)
{
    struct silt_visitors *all = x->visitor->all;
    const struct sockaddr *who = (const struct sockaddr *)(const void *)&x->from;
    int status = silt_host_read(&all->settings.rule, &scratch.head, &scratch.host);
    if (status != 0)
        silt_exchange_page(x, status == 404 ? SILT_PAGE_UNKNOWN : SILT_PAGE_MALFORMED, NULL);
    else if (x->visitor->bare && !silt_front_is(&all->fronts, &x->visitor->from))
        lift(x);
    else if (!silt_guesses_may(&all->guesses, who, all->loop->now_ms) && !silt_routes_knows(all->routes, &scratch.host))
        silt_exchange_page(x, SILT_PAGE_GUESSING, NULL);
    else {
        silt_visitor_deadline(x->visitor, all->settings.wait_ms + GRACE_MS);
        x->at_once = true;
        silt_routes_find(all->routes, &scratch.host, &x->wait);
        x->at_once = false;
    }
}

/* The beginning */

static bool is_repeatable(silt_slice method)
{
    static const silt_slice methods[] = {{"GET", 3}, {"HEAD", 4}, {"OPTIONS", 7}, {"PUT", 3}, {"DELETE", 6}, {"TRACE", 5}};
    for (size_t i = 0; i < SILT_COUNT(methods); i++)
        if (silt_slice_eq(methods[i], method))
            return true;
    return false;
}

static bool wants_html(const struct silt_http_head *h)
{
    silt_slice accept = silt_http_field(h, SILT_LIT("accept")), one, type;
    while (silt_slice_split(&accept, ',', &one))
        if (silt_slice_split(&one, ';', &type) && silt_slice_ieq(silt_slice_trim(type), SILT_LIT("text/html")))
            return true;
    return false;
}

static struct silt_exchange *new_exchange(struct silt_visitor *v, const struct silt_http_head *h)
{
    struct silt_exchange *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    x->visitor = v;
    x->grave.free = free_exchange;
    x->wait.on_found = on_found;
    x->user.on_drop = on_drop;
    x->dial.fill = fill_dial;
    x->dial.on_answer = on_dialed;
    x->request = silt_body_of_request(h);
    x->request_done = x->request.kind == SILT_BODY_NONE;
    x->head_only = silt_slice_eq(h->method, SILT_LIT("HEAD"));
    x->repeatable = is_repeatable(h->method);
    x->upgrade = h->upgrade && x->request_done && h->minor == 1
                 && silt_heads_lists(h, SILT_LIT("connection"), SILT_LIT("upgrade"));
    x->expects = h->expect_continue;
    x->old = h->minor == 0;
    x->keeps = x->old && !h->close;
    x->html = wants_html(h);
    x->began_ms = x->active_ms = silt_clock_ms();
    silt_list_init(&x->wait.link);
    silt_list_init(&x->user.link);
    silt_list_init(&x->tokens.link);
    silt_buf_init(&x->head, SILT_HEADS_MAX);
    silt_buf_init(&x->to_up, SILT_HEADS_MAX + 2 * SILT_VISITOR_PIECE);
    silt_buf_init(&x->from_up, SILT_HTTP_HEAD_MAX + SILT_VISITOR_PIECE);
    silt_buf_init(&x->cookie, COOKIE_MAX + SILT_HTTP_HEAD_MAX);
    return x;
}

/* Who it is and how it came. A front knows better than its connection tells. */
static void look_behind(struct silt_exchange *x, const struct silt_http_head *h)
{
    const struct silt_visitor *v = x->visitor;
    x->from = v->from;
    x->tls = v->veil != NULL || v->all->tls;
    if (!silt_front_is(&v->all->fronts, &v->from))
        return;
    silt_front_visitor(&v->all->fronts, h, &x->from);
    x->tls = silt_front_is_tls(h, x->tls);
}

static void refuse(struct silt_visitor *v, int status)
{
    struct silt_page page = {.kind = SILT_PAGE_MALFORMED, .status = status, .close = true};
    silt_page_write(&v->out, &page);
    v->last = true;
    silt_visitor_answered(v);
}

bool silt_exchange_begin(struct silt_visitor *v, struct silt_route *route, uint32_t flags)
{
    scratch.of = NULL; /* also a head that is not complete, or none, takes the place of the one before */
    int len = silt_http_parse(&scratch.head, silt_buf_slice(&v->in), false);
    if (len == 0)
        return false;
    if (len < 0) {
        refuse(v, -len);
        return true;
    }
    struct silt_exchange *x = new_exchange(v, &scratch.head);
    v->exchange = x;
    look_behind(x, &scratch.head);
    v->last = v->last || scratch.head.close;
    x->head_len = (uint16_t)len;
    scratch.of = x;
    if (route == NULL) {
        find(x);
        return true;
    }
    scratch.host = (struct silt_host){.path = scratch.head.path};
    x->flags = flags;
    x->port = route->port;
    go(x, route);
    return true;
}

/* While it lasts */

void silt_exchange_on_bytes(struct silt_visitor *v)
{
    if (v->exchange->stage >= SILT_EXCHANGE_PASSING)
        silt_pass_on_visitor(v->exchange);
    else
        v->noisy = true;
}

void silt_exchange_on_written(struct silt_visitor *v)
{
    if (v->exchange->stage >= SILT_EXCHANGE_PASSING)
        silt_pass_on_written(v->exchange);
}

void silt_exchange_settle(struct silt_visitor *v)
{
    if (v->exchange->stage >= SILT_EXCHANGE_PASSING)
        silt_pass_settle(v->exchange);
    else
        silt_visitor_watch(v, false);
}

int64_t silt_exchange_check_ms(const struct silt_exchange *x)
{
    const struct silt_visitors_settings *s = &x->visitor->all->settings;
    int64_t ms = s->silence_timeout_ms < CHECK_MS ? s->silence_timeout_ms : CHECK_MS;
    int64_t total = (int64_t)s->total_timeout_s * 1000;
    return total > 0 && total < ms ? total : ms;
}

static bool is_stalled(const struct silt_exchange *x, int64_t now)
{
    const struct silt_visitors_settings *s = &x->visitor->all->settings;
    bool waits = x->to_up.len > 0 || x->visitor->out.len > 0;
    int64_t silent = now - x->active_ms;
    if (s->total_timeout_s > 0 && now - x->began_ms > (int64_t)s->total_timeout_s * 1000)
        return true;
    return silent >= s->silence_timeout_ms || (waits && silent >= STALL_MS);
}

void silt_exchange_on_late(struct silt_visitor *v)
{
    struct silt_exchange *x = v->exchange;
    if (x->stage < SILT_EXCHANGE_PASSING)
        silt_exchange_page(x, SILT_PAGE_LATE, NULL);
    else if (is_stalled(x, silt_clock_ms()))
        silt_exchange_fail(x, SILT_PAGE_LATE);
    else
        silt_visitor_deadline(v, silt_exchange_check_ms(x));
}
