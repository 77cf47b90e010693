/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/passage.h"
#include "base/clock.h"
#include "base/without.h"
#include "proxy/flow.h"
#include "proxy/inspect.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PIECE = 128 << 10, /* read at once */
    PIECE_LEAST = 4 << 10,
    KEPT_ALL = 8 << 20, /* what all passages together keep in one direction, about */
    BEGIN_MS = 10000,   /* to be connected, and on a web port to say whom one wants */
    IDLE_MS = 3600 * 1000,
    HALF_MS = 300 * 1000, /* one side has nothing more to say */
    HTTP = 80,
    HTTPS = 443,
};

/*  WAITING --a socket--> CONNECTING --connected--> OPEN                */
enum way { WAITING, CONNECTING, OPEN };

/* Why it may pass. */
enum by { BY_NOTHING_YET, BY_NETWORK, BY_NAME, BY_ADDRESS };

struct passage {
    struct silt_link link;
    struct silt_passages *all;     /* borrowed */
    struct silt_egress_link *from; /* borrowed: lives longer */
    struct silt_watch inside, outside;
    struct silt_timer late;
    struct silt_grave grave;
    struct silt_dialer_want want;
    struct sockaddr_storage to;
    silt_prefix address;
    uint16_t port;
    enum way way;
    enum by by;
    struct silt_inspect inspect;
    char name[SILT_EGRESS_NAME];      /* whom it talked to last */
    struct silt_buf held;             /* from inside, not judged yet */
    struct silt_buf up, down;         /* to be written outside, inside */
    bool inside_ended, outside_ended; /* have nothing more to say */
    bool up_shut, down_shut;          /* and the other one has been told */
    bool answered;                    /* something came from outside */
    int64_t active_ms;
};

static char piece[PIECE];

/* The end */

static void free_passage(struct silt_grave *g)
{
    struct passage *p = silt_container_of(g, struct passage, grave);
    silt_buf_fini(&p->held);
    silt_buf_fini(&p->up);
    silt_buf_fini(&p->down);
    free(p);
}

static void close_watch(struct passage *p, struct silt_watch *w)
{
    if (w->fd < 0)
        return;
    silt_loop_forget(p->all->loop, w);
    silt_close_fd(&w->fd);
}

static void end(struct passage *p)
{
    close_watch(p, &p->inside);
    close_watch(p, &p->outside);
    silt_dialer_leave(&p->want);
    silt_loop_cancel(p->all->loop, &p->late);
    silt_list_remove(&p->link);
    p->from->counts.open--;
    p->all->count--;
    silt_loop_bury(p->all->loop, &p->grave);
}

/* Both sides see a reset: nobody takes half of something for the whole. */
static void break_off(struct passage *p)
{
    silt_flow_reset_at_close(p->inside.fd);
    silt_flow_reset_at_close(p->outside.fd);
    end(p);
}

/* What is read may have to be kept until somebody takes it. */
static size_t piece_of(const struct passage *p)
{
    size_t share = KEPT_ALL / p->all->count;
    if (share > PIECE)
        return PIECE;
    return share > PIECE_LEAST ? share : PIECE_LEAST;
}

static bool is_tls(const struct passage *p)
{
    return p->inspect.state == SILT_INSPECT_HELLO
           || (p->inspect.state == SILT_INSPECT_FIRST && p->held.len > 0 && p->held.data[0] == 22);
}

static bool is_http(const struct passage *p)
{
    return p->inspect.state == SILT_INSPECT_HEAD || p->inspect.state == SILT_INSPECT_BODY
           || p->inspect.state == SILT_INSPECT_TURN;
}

/* A word of why, in the protocol's own way, as long as nobody else has answered. */
static void excuse(struct passage *p, const char *name)
{
    static const char alert[] = {21, 3, 1, 0, 2, 2, 49}; /* fatal: access denied */
    char text[1024];
    int n;
    if (p->answered)
        return;
    if (is_tls(p)) {
        (void)send(p->inside.fd, alert, sizeof(alert), MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (is_http(p)) {
        n = snprintf(
            text, sizeof(text),
            "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n"
            "refused by the network policy of this sandbox%s%s\n",
            name[0] != 0 ? ": " : "", name);
        (void)send(p->inside.fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

static void refuse(struct passage *p, enum silt_egress_reason why, const char *name)
{
    struct silt_egress_refusal r = {.protocol = SILT_EGRESS_TCP, .reason = (uint8_t)why};
    (void)snprintf(r.name, sizeof(r.name), "%s", name);
    silt_links_put(&r, &p->address, p->port);
    silt_links_refuse(p->all->links, p->from, &r);
    excuse(p, name);
    break_off(p);
}

/* Bytes */

static void watch(struct passage *p)
{
    uint32_t inside = p->inside_ended || p->up.len > 0 ? 0 : EPOLLIN;
    uint32_t outside = p->outside_ended || p->down.len > 0 ? 0 : EPOLLIN;
    silt_loop_watch(p->all->loop, &p->inside, inside | (p->down.len > 0 ? (uint32_t)EPOLLOUT : 0U));
    if (p->way == WAITING)
        return;
    if (p->way == CONNECTING)
        outside = EPOLLOUT;
    else if (p->up.len > 0)
        outside |= EPOLLOUT;
    silt_loop_watch(p->all->loop, &p->outside, outside);
}

/* A side that said its last word has been heard: the other one is told. */
static void pass_ends_on(struct passage *p)
{
    if (p->inside_ended && !p->up_shut && p->way == OPEN && p->up.len == 0) {
        (void)shutdown(p->outside.fd, SHUT_WR);
        p->up_shut = true;
    }
    if (p->outside_ended && !p->down_shut && p->down.len == 0) {
        (void)shutdown(p->inside.fd, SHUT_WR);
        p->down_shut = true;
    }
}

/* After everything that happened, once. */
static void settle(struct passage *p)
{
    pass_ends_on(p);
    if (p->up_shut && p->down_shut)
        end(p);
    else
        watch(p);
}

/* Judging */

static bool is_web(uint16_t port)
{
    return port == HTTP || port == HTTPS;
}

/* 0: it may be talked to, here. */
static enum silt_egress_reason judge_name(const struct passage *p, const char *name)
{
    silt_slice text = silt_slice_of(name);
    if (silt_without("allow_hosts"))
        return 0;
    switch (silt_policy_name(p->from->policy, text, p->port)) {
    case SILT_POLICY_NO:
        return SILT_REFUSED_NAME;
    case SILT_POLICY_OTHER_PORT:
        return SILT_REFUSED_PORT;
    case SILT_POLICY_YES:
        break;
    }
    return silt_pins_has(&p->from->pins, text, &p->address, silt_clock_ms())
               ? 0
               : SILT_REFUSED_MISMATCH;
}

static enum silt_policy_verdict reach(const struct passage *p)
{
    return silt_pins_reach(&p->from->pins, p->from->policy, &p->address, p->port, silt_clock_ms());
}

/* false: it is over. */
static bool on_named(struct passage *p)
{
    enum silt_egress_reason why = judge_name(p, p->inspect.name);
    if (why != 0) {
        refuse(p, p->by == BY_NAME ? SILT_REFUSED_SECOND : why, p->inspect.name);
        return false;
    }
    /* A second hello is no second request. */
    if (p->by != BY_NAME || p->inspect.state != SILT_INSPECT_HELLO)
        p->from->counts.requests++;
    p->by = BY_NAME;
    (void)snprintf(p->name, sizeof(p->name), "%s", p->inspect.name);
    return true;
}

static bool on_nameless(struct passage *p)
{
    if (is_web(p->port) || reach(p) != SILT_POLICY_YES) {
        refuse(p, SILT_REFUSED_NAMELESS, "");
        return false;
    }
    p->from->counts.requests++;
    p->by = BY_ADDRESS;
    return true;
}

static void release(struct passage *p, size_t len)
{
    silt_buf_add(&p->up, (silt_slice){p->held.data, len});
    silt_buf_drop(&p->held, len);
}

/* false: it is over. */
static bool judge(struct passage *p)
{
    while (p->held.len > 0) {
        size_t len = 0;
        switch (silt_inspect_next(&p->inspect, silt_buf_slice(&p->held), &len)) {
        case SILT_INSPECT_MORE:
            if (p->held.len < SILT_INSPECT_HELD_MAX)
                return true;
            refuse(p, SILT_REFUSED_PROTOCOL, "");
            return false;
        case SILT_INSPECT_PASS:
            break;
        case SILT_INSPECT_NAMED:
            if (!on_named(p))
                return false;
            break;
        case SILT_INSPECT_NAMELESS:
            if (!on_nameless(p))
                return false;
            break;
        case SILT_INSPECT_REFUSE:
            refuse(p, p->inspect.reason, p->inspect.name);
            return false;
        }
        release(p, len);
    }
    if (p->held.cap > SILT_FLOW_KEEP)
        silt_buf_fini(&p->held);
    return true;
}

/* false: it is over. */
static bool on_bytes(struct passage *p, silt_slice bytes)
{
    uint64_t *sent = &p->from->counts.sent_bytes;
    bool free = p->inspect.state == SILT_INSPECT_FREE && p->held.len == 0;
    if (free && p->way == OPEN) {
        if (silt_flow_forward(p->outside.fd, &p->up, bytes, sent) == 0)
            return true;
        break_off(p);
        return false;
    }
    silt_buf_add(&p->held, bytes);
    if (!judge(p))
        return false;
    if (p->way != OPEN || silt_flow_flush(p->outside.fd, &p->up, sent) == 0)
        return true;
    break_off(p);
    return false;
}

/* false: it is over. */
static bool read_inside(struct passage *p)
{
    bool free = p->inspect.state == SILT_INSPECT_FREE && p->way == OPEN;
    size_t room = free ? piece_of(p) : SILT_INSPECT_HELD_MAX - p->held.len;
    ssize_t n = recv(p->inside.fd, piece, room, MSG_DONTWAIT);
    if (n > 0)
        return on_bytes(p, (silt_slice){piece, (size_t)n});
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n == 0 && p->held.len == 0) {
        p->inside_ended = true;
        return true;
    }
    if (n == 0)
        refuse(p, SILT_REFUSED_SILENCE, ""); /* its last word, and nobody can tell what it is */
    else
        break_off(p);
    return false;
}

/* The answer to a request for a WebSocket decides what may follow it, and what is held already.
 * false: it is over. */
static bool hear(struct passage *p, silt_slice said)
{
    if (p->inspect.state != SILT_INSPECT_TURN)
        return true;
    silt_inspect_hear(&p->inspect, said);
    if (p->inspect.state == SILT_INSPECT_TURN || p->held.len == 0)
        return true;
    return on_bytes(p, (silt_slice){"", 0});
}

static bool read_outside(struct passage *p)
{
    ssize_t n = recv(p->outside.fd, piece, piece_of(p), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n == 0)
        p->outside_ended = true;
    p->answered = p->answered || n > 0;
    silt_slice said = {piece, n > 0 ? (size_t)n : 0};
    if (n >= 0
        && silt_flow_forward(p->inside.fd, &p->down, said, &p->from->counts.received_bytes) == 0)
        return hear(p, said);
    break_off(p);
    return false;
}

static void on_inside(struct silt_watch *w, uint32_t events)
{
    struct passage *p = silt_container_of(w, struct passage, inside);
    p->active_ms = p->all->loop->now_ms;
    if ((events & EPOLLOUT) != 0
        && silt_flow_flush(w->fd, &p->down, &p->from->counts.received_bytes) < 0) {
        break_off(p);
        return;
    }
    if (!p->inside_ended && p->up.len == 0 && !read_inside(p))
        return;
    if (p->inside_ended && (events & EPOLLERR) != 0)
        break_off(p);
    else
        settle(p);
}

/* The way out */

static bool is_connected(const struct passage *p)
{
    int error = 0;
    socklen_t len = sizeof(error);
    return getsockopt(p->outside.fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
}

static void on_outside(struct silt_watch *w, uint32_t events)
{
    struct passage *p = silt_container_of(w, struct passage, outside);
    p->active_ms = p->all->loop->now_ms;
    if (p->way == CONNECTING) {
        if (!is_connected(p)) {
            break_off(p);
            return;
        }
        p->way = OPEN;
    }
    if (silt_flow_flush(w->fd, &p->up, &p->from->counts.sent_bytes) < 0) {
        break_off(p);
        return;
    }
    if (!p->outside_ended && p->down.len == 0 && !read_outside(p))
        return;
    if (p->outside_ended && (events & EPOLLERR) != 0)
        break_off(p);
    else
        settle(p);
}

static void on_socket(struct silt_dialer_want *want, int fd)
{
    struct passage *p = silt_container_of(want, struct passage, want);
    socklen_t len =
        p->address.family == 4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    p->outside = (struct silt_watch){.fd = fd, .on_ready = on_outside};
    silt_flow_keep_alive(fd);
    if (connect(fd, (const struct sockaddr *)&p->to, len) < 0 && errno != EINPROGRESS) {
        break_off(p);
        return;
    }
    p->way = CONNECTING;
    watch(p);
}

static void on_late(struct silt_timer *t)
{
    struct passage *p = silt_container_of(t, struct passage, late);
    int64_t limit = p->inside_ended || p->outside_ended ? HALF_MS : IDLE_MS;
    int64_t left = p->active_ms + limit - p->all->loop->now_ms;
    if (p->way != OPEN || left <= 0)
        break_off(p);
    else if (p->by == BY_NOTHING_YET && is_web(p->port))
        refuse(p, SILT_REFUSED_SILENCE, "");
    else
        silt_loop_after(p->all->loop, &p->late, left < HALF_MS ? left : HALF_MS);
}

/* The beginning */

static void init(struct passage *p, struct silt_passages *all, const struct silt_passage_caller *c)
{
    *p = (struct passage){
        .all = all,
        .from = c->link,
        .inside = {.fd = c->fd, .on_ready = on_inside},
        .outside = {.fd = -1},
        .late = {.on_time = on_late},
        .grave = {.free = free_passage},
        .want = {.family = c->address.family == 4 ? AF_INET : AF_INET6, .on_socket = on_socket},
        .to = c->to,
        .address = c->address,
        .port = c->port,
        .by = c->by_network ? BY_NETWORK : BY_NOTHING_YET,
        .active_ms = all->loop->now_ms};
    silt_buf_init(&p->held, SILT_INSPECT_HELD_MAX);
    silt_buf_init(&p->up, PIECE + SILT_INSPECT_HELD_MAX);
    silt_buf_init(&p->down, PIECE);
    silt_list_init(&p->link);
    silt_list_init(&p->want.link);
}

void silt_passage_begin(struct silt_passages *all, const struct silt_passage_caller *c)
{
    struct passage *p = malloc(sizeof(*p));
    if (p == NULL)
        abort();
    init(p, all, c);
    silt_list_append(&c->link->passages, &p->link);
    all->count++;
    c->link->counts.open++;
    c->link->counts.connections++;
    if (c->by_network) {
        p->inspect.state = SILT_INSPECT_FREE;
        c->link->counts.requests++;
    }
    silt_flow_keep_alive(c->fd);
    silt_loop_after(all->loop, &p->late, BEGIN_MS);
    watch(p);
    silt_dialer_ask(all->dialer, &p->want);
}

/* Changes */

static bool may_stay(const struct passage *p)
{
    const struct silt_policy *policy = p->from->policy;
    if (policy == NULL)
        return false;
    switch (p->by) {
    case BY_NETWORK:
        return silt_policy_address(policy, &p->address, p->port) == SILT_POLICY_YES;
    case BY_NAME:
        return silt_policy_name(policy, silt_slice_of(p->name), p->port) == SILT_POLICY_YES;
    case BY_NOTHING_YET:
    case BY_ADDRESS:
        return reach(p) == SILT_POLICY_YES;
    }
    return false;
}

void silt_passages_reconsider(struct silt_egress_link *link)
{
    silt_list_each(it, &link->passages)
    {
        struct passage *p = silt_container_of(it, struct passage, link);
        if (!may_stay(p))
            break_off(p);
    }
}

void silt_passages_cut(struct silt_egress_link *link)
{
    silt_list_each(it, &link->passages) break_off(silt_container_of(it, struct passage, link));
}

void silt_passages_free(struct silt_egress_link *link)
{
    silt_list_each(it, &link->passages)
    {
        struct passage *p = silt_container_of(it, struct passage, link);
        p->by = BY_NETWORK;
        p->inspect.state = SILT_INSPECT_FREE;
        if (judge(p)) /* what was held goes */
            watch(p);
    }
}
