/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/request.h"
#include "base/clock.h"
#include "base/test_switch.h"

#include <assert.h>
#include <stdlib.h>

enum {
    GRACE_MS = 5000,   /* for siltd, in addition to the time for the port */
    CHECK_MS = 15000,  /* how often a request in progress is checked for timeouts */
    STALL_MS = 120000, /* how long a peer may refuse pending output */
    FRESH_MS = 1000,   /* how long a socket may be idle for a request that cannot be repeated, and a
                          repeatable one unanswered to be repeated */
    ATTEMPTS = 3,
    ANY_AGE_MS = 60000,
    COOKIE_MAX = 1024,
};

/* States */

void silt_proxied_request_enter(struct silt_proxied_request *x,
                                enum silt_proxied_request_stage next)
{
    assert(next > x->stage || next == SILT_PROXIED_REQUEST_DIALING);
    x->stage = next;
}

void silt_proxied_request_enter_body(struct silt_proxied_request *x,
                                     enum silt_proxied_request_body next)
{
    assert(next == SILT_PROXIED_REQUEST_SENT ? x->body == SILT_PROXIED_REQUEST_SENDING
                                             : x->body == SILT_PROXIED_REQUEST_UNSENT);
    x->body = next;
}

void silt_proxied_request_enter_response(struct silt_proxied_request *x,
                                         enum silt_proxied_response next)
{
    assert(next == x->response + 1);
    x->response = next;
}

bool silt_proxied_request_is_read(const struct silt_proxied_request *x)
{
    return x->body == SILT_PROXIED_REQUEST_SENT || x->body == SILT_PROXIED_REQUEST_BODILESS;
}

/* The end */

static void free_exchange(struct silt_grave *g)
{
    struct silt_proxied_request *x = silt_outer(g, struct silt_proxied_request, grave);
    silt_buf_fini(&x->head);
    silt_buf_fini(&x->to_up);
    silt_buf_fini(&x->from_up);
    silt_buf_fini(&x->cookie);
    free(x);
}

static void let_go(struct silt_proxied_request *x, bool park)
{
    struct silt_upstream *u = silt_take_ptr(x->up);
    struct silt_route *route = silt_take_ptr(x->route);
    if (u != NULL && park && route != NULL)
        silt_upstream_park(u, route);
    else if (u != NULL)
        silt_upstream_close(u, x->response != SILT_PROXIED_RESPONSE_COMPLETE);
    silt_routes_leave(&x->wait);
    silt_preview_channel_leave(x->visitor->all->talk, &x->dial);
    silt_list_remove(&x->tokens.link);
    if (route != NULL)
        silt_route_unuse(route, &x->user);
}

void silt_proxied_request_free(struct silt_proxied_request *x)
{
    let_go(x, false);
    silt_loop_bury(x->visitor->all->loop, &x->grave);
}

static void end(struct silt_proxied_request *x, bool park)
{
    struct silt_client_conn *v = x->visitor;
    let_go(x, park);
    if (x->head_len > 0) /* an error page before the head was used */
        silt_buf_drop(&v->in, x->head_len);
    if (!silt_proxied_request_is_read(x))
        v->last = true; /* the rest of the body is not read */
    v->exchange = NULL;
    silt_proxied_request_free(x);
    silt_client_conn_answered(v);
}

void silt_proxied_request_over(struct silt_proxied_request *x)
{
    const struct silt_upstream *u = x->up;
    end(x, u->reusable && !u->broken && silt_proxied_request_is_read(x) && x->to_up.len == 0);
}

void silt_proxied_request_page(struct silt_proxied_request *x, enum silt_error_page_kind kind,
                               const char *text)
{
    struct silt_client_conn *v = x->visitor;
    v->last = v->last || !silt_proxied_request_is_read(x);
    struct silt_error_page page = {.kind = kind,
                                   .status = 400,
                                   .port = x->port,
                                   .wait_ms = v->all->settings.wait_ms,
                                   .text = text,
                                   .html = x->html,
                                   .head_only = x->head_only,
                                   .close = v->last,
                                   .old = x->keeps};
    silt_error_page_write(&v->out, &page);
    end(x, false);
}

void silt_proxied_request_fail(struct silt_proxied_request *x, enum silt_error_page_kind kind)
{
    if (x->response >= SILT_PROXIED_RESPONSE_TOLD)
        silt_client_conn_cut(x->visitor);
    else
        silt_proxied_request_page(x, kind, NULL);
}

static void on_drop(struct silt_route_user *u)
{
    struct silt_proxied_request *x = silt_outer(u, struct silt_proxied_request, user);
    struct silt_client_conn *v = x->visitor;
    x->route = NULL;
    silt_proxied_request_fail(x, SILT_ERROR_PAGE_UNKNOWN);
    silt_client_conn_settle(v);
}

/* Asking for a socket */

static int64_t left_ms(const struct silt_proxied_request *x)
{
    return x->began_ms + x->visitor->all->settings.wait_ms - silt_clock_ms();
}

static bool fill_dial(struct silt_preview_channel_ask *a, struct silt_preview_request *q)
{
    const struct silt_proxied_request *x = silt_outer(a, struct silt_proxied_request, dial);
    int64_t left = left_ms(x);
    if (x->route == NULL || !x->route->sure)
        return false; /* the route is being looked up again */
    q->type = SILT_PREVIEW_DIAL;
    q->route = x->route->number;
    q->body.dial.wait_ms = left > 0 ? (uint32_t)left : 0;
    return true;
}

static void on_dialed(struct silt_preview_channel_ask *a, const struct silt_preview_answer *n,
                      int *fd)
{
    struct silt_proxied_request *x = silt_outer(a, struct silt_proxied_request, dial);
    struct silt_client_conn *v = x->visitor;
    uint32_t type = n->type < SILT_PREVIEW_SAY_MAX ? n->type : SILT_PREVIEW_ENDED;
    switch ((enum silt_preview_say)type) {
    case SILT_PREVIEW_SOCKET:
        if (*fd < 0)
            silt_proxied_request_page(x, SILT_ERROR_PAGE_BROKEN, NULL);
        else if (!silt_pool_has_room(&v->all->pool))
            silt_proxied_request_page(x, SILT_ERROR_PAGE_BUSY, NULL);
        else
            silt_forward_attach(x, silt_upstream_new(&v->all->pool, silt_take_fd(fd)));
        break;
    case SILT_PREVIEW_UNKNOWN:
        silt_proxied_request_page(x, SILT_ERROR_PAGE_UNKNOWN, NULL);
        break;
    case SILT_PREVIEW_CLOSED:
        silt_proxied_request_page(x, SILT_ERROR_PAGE_CLOSED, NULL);
        break;
    case SILT_PREVIEW_BUSY:
        silt_proxied_request_page(x, SILT_ERROR_PAGE_BUSY, NULL);
        break;
    case SILT_PREVIEW_ENDED:
    case SILT_PREVIEW_LOCKED:
    case SILT_PREVIEW_ROUTE:
    case SILT_PREVIEW_DROP:
    case SILT_PREVIEW_HAND:
    case SILT_PREVIEW_SAY_MAX:
        silt_proxied_request_page(x, SILT_ERROR_PAGE_ENDED,
                                  n->type == SILT_PREVIEW_ENDED ? n->body.text : NULL);
        break;
    }
    silt_client_conn_settle(v);
}

static void dial(struct silt_proxied_request *x)
{
    silt_proxied_request_enter(x, SILT_PROXIED_REQUEST_DIALING);
    x->attempts++;
    silt_client_conn_deadline(x->visitor, (left_ms(x) > 0 ? left_ms(x) : 0) + GRACE_MS);
    if (!x->dial.open) /* otherwise it was sent with the FIND */
        silt_preview_channel_ask(x->visitor->all->talk, &x->dial);
}

static void connect_to(struct silt_proxied_request *x)
{
    struct silt_upstream *idle =
        silt_upstream_take(x->route, x->repeatable ? ANY_AGE_MS : FRESH_MS);
    if (idle == NULL) {
        dial(x);
        return;
    }
    silt_preview_channel_leave(x->visitor->all->talk, &x->dial);
    silt_forward_attach(x, idle);
}

/* The service may close an idle socket just as we write to it: then it has not seen the request. A
 * service that has seen it takes longer, or answers; the request is not sent twice. */
static bool is_unheard(const struct silt_proxied_request *x)
{
    return x->up->reused && x->repeatable && silt_clock_ms() - x->active_ms < FRESH_MS;
}

void silt_proxied_request_lost(struct silt_proxied_request *x, bool refused)
{
    bool again = refused ? left_ms(x) > 0 : is_unheard(x);
    bool body_sent =
        x->body == SILT_PROXIED_REQUEST_SENDING || x->body == SILT_PROXIED_REQUEST_SENT;
    if (x->response != SILT_PROXIED_RESPONSE_SILENT || body_sent || !again
        || x->attempts >= ATTEMPTS || x->route == NULL) {
        silt_proxied_request_fail(x, refused ? SILT_ERROR_PAGE_CLOSED : SILT_ERROR_PAGE_BROKEN);
        return;
    }
    silt_upstream_close(silt_take_ptr(x->up), false);
    silt_buf_clear(&x->to_up);
    dial(x);
}

/* Finding the route */

static bool parse_again(const struct silt_proxied_request *x, struct silt_parsed_head *p)
{
    const struct silt_client_conn *v = x->visitor;
    silt_slice bytes = {v->in.data, x->head_len};
    return silt_http_parse(&p->head, bytes, SILT_HTTP_REQUEST) > 0
           && silt_host_read(&v->all->settings.rule, &p->head, &p->host) == 0;
}

/* Redirects to the same URL without the proof, or with the missing slash. */
static void move(struct silt_proxied_request *x, const struct silt_parsed_head *p)
{
    struct silt_client_conn *v = x->visitor;
    silt_slice path = p->head.path;
    silt_auto_buf to, query;
    silt_buf_init(&to, SILT_HEADER_REWRITE_MAX);
    silt_buf_init(&query, SILT_HEADER_REWRITE_MAX);
    if (path.len > 1 && (path.data[1] == '/' || path.data[1] == '\\'))
        silt_buf_add(&to, SILT_LIT("/.")); /* "//host" would name another host */
    silt_buf_add(&to, path);
    if (p->host.unfinished)
        silt_buf_add_byte(&to, '/');
    silt_header_rewrite_put_query(&query, p->head.query);
    v->last = v->last || !silt_proxied_request_is_read(x);
    struct silt_error_page_move m = {.to = silt_buf_slice(&to),
                                     .query = silt_buf_slice(&query),
                                     .cookie = silt_buf_slice(&x->cookie),
                                     .close = v->last,
                                     .old = x->keeps};
    silt_error_page_write_move(&v->out, &m);
    end(x, false);
}

static void write_head(struct silt_proxied_request *x, const struct silt_parsed_head *p)
{
    struct silt_client_conn *v = x->visitor;
    char address[INET6_ADDRSTRLEN];
    silt_client_conn_address(&x->from, address);
    struct silt_header_rewrite_visit visit = {.host = &p->host,
                                              .address = address,
                                              .flags = x->flags,
                                              .port = x->port,
                                              .tls = x->tls,
                                              .upgrade = x->upgrade};
    silt_header_rewrite_request(&x->head, &p->head, &visit);
    silt_buf_drop(&v->in, x->head_len);
    x->head_len = 0;
}

static void go(struct silt_proxied_request *x, const struct silt_parsed_head *p,
               struct silt_route *route)
{
    struct silt_client_conn *v = x->visitor;
    if (route->guest->using >= v->all->settings.connections) {
        silt_proxied_request_page(x, SILT_ERROR_PAGE_BUSY, NULL);
        return;
    }
    x->route = route;
    silt_route_use(route, &x->user);
    write_head(x, p);
    if (x->head.broken)
        silt_proxied_request_page(x, SILT_ERROR_PAGE_MALFORMED, NULL);
    else
        connect_to(x);
}

/* Browsers send the cookie with WebSockets of other hosts on the same site as well, and let those
 * pages read the messages. Such a page needs a signed URL of its own. */
static bool is_borrowed(const struct silt_proxied_request *x, const struct silt_parsed_head *p)
{
    return x->upgrade && !p->host.signed_url
           && silt_http_field(&p->head, SILT_LIT("origin")).len > 0 && !silt_http_is_own(&p->head)
           && !silt_without("preview_origin");
}

/* Navigation with a signed URL leads to the same one without the proof. */
static bool is_moved(const struct silt_proxied_request *x, const struct silt_parsed_head *p)
{
    bool navigates = x->repeatable && x->html && !x->upgrade && p->host.signed_url;
    return navigates || p->host.unfinished;
}

static void on_parsed_route(struct silt_proxied_request *x, const struct silt_parsed_head *p,
                            struct silt_route *route, uint32_t lasts_s)
{
    x->flags = route->flags;
    if (p->host.form == SILT_PREVIEW_PATH)
        x->flags |= SILT_PREVIEW_CAGED; /* names by path share an origin, those by host have one
                                           each; both lead to the same route */
    bool private = (route->flags & SILT_PREVIEW_PRIVATE) != 0;
    if (p->host.signed_url && private)
        silt_header_rewrite_put_cookie(&x->cookie, &p->host, lasts_s, x->tls);
    if (private && is_borrowed(x, p)) {
        silt_proxied_request_page(x, SILT_ERROR_PAGE_LOCKED, NULL);
        return;
    }
    if (is_moved(x, p))
        move(x, p);
    else
        go(x, p, route);
}

static void on_route(struct silt_proxied_request *x, struct silt_route *route, uint32_t lasts_s)
{
    struct silt_parsed_head again;
    const struct silt_parsed_head *p = silt_take_ptr(x->parsed);
    x->port = route->port;
    if (p == NULL && !parse_again(x, &again))
        silt_proxied_request_page(x, SILT_ERROR_PAGE_MALFORMED, NULL); /* it parsed before */
    else
        on_parsed_route(x, p != NULL ? p : &again, route, lasts_s);
}

static void on_found(struct silt_route_wait *w, enum silt_preview_say say, struct silt_route *route,
                     uint32_t lasts_s)
{
    struct silt_proxied_request *x = silt_outer(w, struct silt_proxied_request, wait);
    struct silt_client_conn *v = x->visitor;
    bool waited = x->stage == SILT_PROXIED_REQUEST_FINDING;
    if (say == SILT_PREVIEW_ROUTE) {
        on_route(x, route, lasts_s);
    } else if (say == SILT_PREVIEW_LOCKED) {
        silt_proxied_request_page(x, SILT_ERROR_PAGE_LOCKED, NULL);
    } else if (say == SILT_PREVIEW_BUSY) {
        silt_proxied_request_page(x, SILT_ERROR_PAGE_BUSY, NULL);
    } else {
        silt_guess_limit_wrong(&v->all->guesses, (const struct sockaddr *)(const void *)&x->from,
                               v->all->loop->now_ms);
        silt_proxied_request_page(x, SILT_ERROR_PAGE_UNKNOWN, NULL);
    }
    if (waited) /* otherwise the caller settles */
        silt_client_conn_settle(v);
}

/* Redirects to https. */
static void lift(struct silt_proxied_request *x, const struct silt_http_head *h)
{
    struct silt_client_conn *v = x->visitor;
    v->last = v->last || !silt_proxied_request_is_read(x);
    struct silt_error_page_lift l = {
        .host = h->host, .target = h->target, .close = v->last, .old = x->keeps};
    silt_error_page_write_lift(&v->out, &l);
    end(x, false);
}

/* If the route is known, the request continues before this returns. */
static void ask_for_route(struct silt_proxied_request *x, const struct silt_parsed_head *p)
{
    struct silt_client_conn *v = x->visitor;
    silt_client_conn_deadline(v, v->all->settings.wait_ms + GRACE_MS);
    x->parsed = p;
    /* A socket as well, unless silt-proxy answers by itself: that must not wake the sandbox.
     * Whether the port is private, and a borrowed cookie refused, only the route tells. */
    x->wait.dial = !is_moved(x, p) && !is_borrowed(x, p) ? &x->dial : NULL;
    x->wait.wait_ms = v->all->settings.wait_ms;
    silt_routes_find(v->all->routes, &p->host, &x->wait);
    x->parsed = NULL;
    if (v->exchange == x && x->stage == SILT_PROXIED_REQUEST_NEW)
        silt_proxied_request_enter(x, SILT_PROXIED_REQUEST_FINDING);
}

static void find(struct silt_proxied_request *x, struct silt_parsed_head *p)
{
    struct silt_client_conns *all = x->visitor->all;
    const struct sockaddr *who = (const struct sockaddr *)(const void *)&x->from;
    int status = silt_host_read(&all->settings.rule, &p->head, &p->host);
    if (status != 0)
        silt_proxied_request_page(
            x, status == 404 ? SILT_ERROR_PAGE_UNKNOWN : SILT_ERROR_PAGE_MALFORMED, NULL);
    else if (x->visitor->bare && !silt_trusted_proxy_is(&all->fronts, &x->visitor->from))
        lift(x, &p->head);
    else if (!silt_guess_limit_may(&all->guesses, who, all->loop->now_ms)
             && !silt_routes_knows(all->routes, &p->host))
        silt_proxied_request_page(x, SILT_ERROR_PAGE_GUESSING, NULL);
    else
        ask_for_route(x, p);
}

/* The beginning */

static bool is_repeatable(silt_slice method)
{
    static const silt_slice methods[] = {{"GET", 3}, {"HEAD", 4},   {"OPTIONS", 7},
                                         {"PUT", 3}, {"DELETE", 6}, {"TRACE", 5}};
    for (size_t i = 0; i < SILT_COUNT(methods); i++)
        if (silt_slice_eq(methods[i], method))
            return true;
    return false;
}

static bool wants_html(const struct silt_http_head *h)
{
    silt_slice accept = silt_http_field(h, SILT_LIT("accept")), one, type;
    while (silt_slice_split(&accept, ',', &one))
        if (silt_slice_split(&one, ';', &type)
            && silt_slice_ieq(silt_slice_trim(type), SILT_LIT("text/html")))
            return true;
    return false;
}

static struct silt_proxied_request *new_exchange(struct silt_client_conn *v,
                                                 const struct silt_http_head *h)
{
    struct silt_proxied_request *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    x->visitor = v;
    x->grave.free = free_exchange;
    x->wait.on_found = on_found;
    x->user.on_drop = on_drop;
    x->dial.fill = fill_dial;
    x->dial.on_answer = on_dialed;
    x->request = silt_body_framing_of_request(h);
    if (x->request.kind == SILT_BODY_FRAMING_NONE)
        silt_proxied_request_enter_body(x, SILT_PROXIED_REQUEST_BODILESS);
    x->head_only = silt_slice_eq(h->method, SILT_LIT("HEAD"));
    x->repeatable = is_repeatable(h->method);
    x->upgrade = h->upgrade && silt_proxied_request_is_read(x) && h->minor == 1
                 && silt_header_rewrite_lists(h, SILT_LIT("connection"), SILT_LIT("upgrade"));
    x->expects = h->expect_continue;
    x->old = h->minor == 0;
    x->keeps = x->old && !h->close;
    x->html = wants_html(h);
    x->began_ms = x->active_ms = silt_clock_ms();
    silt_list_init(&x->wait.link);
    silt_list_init(&x->user.link);
    silt_list_init(&x->tokens.link);
    silt_buf_init(&x->head, SILT_HEADER_REWRITE_MAX);
    silt_buf_init(&x->to_up, SILT_HEADER_REWRITE_MAX + 2 * SILT_CLIENT_CONN_PIECE);
    silt_buf_init(&x->from_up, SILT_HTTP_HEAD_MAX + SILT_CLIENT_CONN_PIECE);
    silt_buf_init(&x->cookie, COOKIE_MAX + SILT_HTTP_HEAD_MAX);
    return x;
}

/* The client's address and scheme; a trusted proxy knows them better than the connection shows. */
static void look_behind(struct silt_proxied_request *x, const struct silt_http_head *h)
{
    const struct silt_client_conn *v = x->visitor;
    x->from = v->from;
    x->tls = v->veil != NULL || v->all->tls;
    if (!silt_trusted_proxy_is(&v->all->fronts, &v->from))
        return;
    silt_trusted_proxy_visitor(&v->all->fronts, h, &x->from);
    x->tls = silt_trusted_proxy_is_tls(h, x->tls);
}

static void refuse(struct silt_client_conn *v, int status)
{
    struct silt_error_page page = {
        .kind = SILT_ERROR_PAGE_MALFORMED, .status = status, .close = true};
    silt_error_page_write(&v->out, &page);
    v->last = true;
    silt_client_conn_answered(v);
}

bool silt_proxied_request_begin(struct silt_client_conn *v, struct silt_route *route,
                                uint32_t flags)
{
    struct silt_parsed_head p;
    int len = silt_http_parse(&p.head, silt_buf_slice(&v->in), SILT_HTTP_REQUEST);
    if (len == 0)
        return false;
    if (len < 0) {
        refuse(v, -len);
        return true;
    }
    struct silt_proxied_request *x = new_exchange(v, &p.head);
    v->exchange = x;
    look_behind(x, &p.head);
    v->last = v->last || p.head.close;
    x->head_len = (uint16_t)len;
    if (route == NULL) {
        find(x, &p);
        return true;
    }
    p.host = (struct silt_host){.path = p.head.path};
    x->flags = flags;
    x->port = route->port;
    go(x, &p, route);
    return true;
}

/* While it lasts */

void silt_proxied_request_on_bytes(struct silt_client_conn *v)
{
    if (v->exchange->stage == SILT_PROXIED_REQUEST_TUNNEL)
        silt_upgrade_on_visitor(v->exchange);
    else if (v->exchange->stage == SILT_PROXIED_REQUEST_PASSING)
        silt_forward_on_visitor(v->exchange);
    else
        v->noisy = true;
}

void silt_proxied_request_on_written(struct silt_client_conn *v)
{
    if (v->exchange->stage >= SILT_PROXIED_REQUEST_PASSING)
        silt_forward_on_written(v->exchange);
}

void silt_proxied_request_settle(struct silt_client_conn *v)
{
    if (v->exchange->stage == SILT_PROXIED_REQUEST_TUNNEL)
        silt_relay_settle(&v->exchange->relay);
    else if (v->exchange->stage == SILT_PROXIED_REQUEST_PASSING)
        silt_forward_settle(v->exchange);
    else
        silt_client_conn_watch(v, false);
}

int64_t silt_proxied_request_check_ms(const struct silt_proxied_request *x)
{
    const struct silt_client_conns_settings *s = &x->visitor->all->settings;
    int64_t ms = s->silence_timeout_ms < CHECK_MS ? s->silence_timeout_ms : CHECK_MS;
    int64_t total = (int64_t)s->total_timeout_s * 1000;
    return total > 0 && total < ms ? total : ms;
}

static bool is_stalled(const struct silt_proxied_request *x, int64_t now)
{
    const struct silt_client_conns_settings *s = &x->visitor->all->settings;
    bool waits = x->to_up.len > 0 || x->visitor->out.len > 0;
    int64_t active = x->active_ms > x->relay.active_ms ? x->active_ms : x->relay.active_ms;
    int64_t silent = now - active;
    if (s->total_timeout_s > 0 && now - x->began_ms > (int64_t)s->total_timeout_s * 1000)
        return true;
    return silent >= s->silence_timeout_ms || (waits && silent >= STALL_MS);
}

void silt_proxied_request_on_late(struct silt_client_conn *v)
{
    struct silt_proxied_request *x = v->exchange;
    if (x->stage < SILT_PROXIED_REQUEST_PASSING)
        silt_proxied_request_page(x, SILT_ERROR_PAGE_LATE, NULL);
    else if (is_stalled(x, silt_clock_ms()))
        silt_proxied_request_fail(x, SILT_ERROR_PAGE_LATE);
    else
        silt_client_conn_deadline(v, silt_proxied_request_check_ms(x));
}
