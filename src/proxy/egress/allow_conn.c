/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/allow_conn.h"
#include "base/clock.h"
#include "base/test_switch.h"
#include "proxy/core/relay.h"
#include "proxy/egress/protocol_sniff.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PIECE = SILT_RELAY_PIECE_MAX, /* read at once */
    KEPT_ALL = 8 << 20,           /* buffered by all connections in one direction, about */
    BEGIN_MS = 10000,             /* to connect and, on a web port, to name a host */
    IDLE_MS = 3600 * 1000,
    HALF_MS = 300 * 1000, /* after a half-close */
    HTTP = 80,
    HTTPS = 443,
};

/* Why it is allowed. */
enum by { BY_NOTHING_YET, BY_NETWORK, BY_NAME, BY_ADDRESS };

struct passage {
    struct silt_link link;
    struct silt_allow_conns *all;  /* borrowed */
    struct silt_egress_link *from; /* borrowed: outlives this */
    struct silt_relay relay;       /* the client is the sandbox, the server is the destination */
    struct silt_timer late;        /* until the host is known */
    struct silt_grave grave;
    struct silt_dial_client_want want;
    struct sockaddr_storage to;
    silt_ip_prefix address;
    uint16_t port;
    enum by by;
    struct silt_protocol_sniff inspect;
    char name[SILT_EGRESS_NAME]; /* the last host */
    struct silt_buf held;        /* from the sandbox, not checked yet */
    struct silt_buf up, down;    /* pending for the server, for the sandbox */
    bool answered;               /* the server has sent something */
};

/* The end */

static void free_passage(struct silt_grave *g)
{
    struct passage *p = silt_outer(g, struct passage, grave);
    silt_buf_fini(&p->held);
    silt_buf_fini(&p->up);
    silt_buf_fini(&p->down);
    free(p);
}

static void on_over(struct silt_relay *r, bool broken)
{
    struct passage *p = silt_outer(r, struct passage, relay);
    (void)broken;
    silt_dial_client_leave(&p->want);
    silt_loop_cancel(p->all->loop, &p->late);
    silt_list_remove(&p->link);
    p->from->counts.open--;
    p->all->count--;
    silt_loop_bury(p->all->loop, &p->grave);
}

static bool is_tls(const struct passage *p)
{
    return p->inspect.state == SILT_PROTOCOL_SNIFF_HELLO
           || (p->inspect.state == SILT_PROTOCOL_SNIFF_FIRST && p->held.len > 0
               && p->held.data[0] == 22);
}

static bool is_http(const struct passage *p)
{
    return p->inspect.state == SILT_PROTOCOL_SNIFF_HEAD
           || p->inspect.state == SILT_PROTOCOL_SNIFF_BODY
           || p->inspect.state == SILT_PROTOCOL_SNIFF_TURN;
}

/* Says why in the client's protocol, unless the server has already answered. */
static void excuse(struct passage *p, const char *name)
{
    static const char alert[] = {21, 3, 1, 0, 2, 2, 49}; /* fatal: access denied */
    char text[1024];
    int n, fd = p->relay.sides[SILT_RELAY_CLIENT].watch.fd;
    if (p->answered)
        return;
    if (is_tls(p)) {
        (void)send(fd, alert, sizeof(alert), MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (is_http(p)) {
        n = snprintf(
            text, sizeof(text),
            "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n"
            "refused by the network policy of this sandbox%s%s\n",
            name[0] != 0 ? ": " : "", name);
        (void)send(fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

static void refuse(struct passage *p, enum silt_egress_reason why, const char *name)
{
    struct silt_egress_refusal r = {.protocol = SILT_EGRESS_TCP, .reason = (uint8_t)why};
    (void)snprintf(r.name, sizeof(r.name), "%s", name);
    silt_link_table_put(&r, &p->address, p->port);
    silt_link_table_refuse(p->all->links, p->from, &r);
    excuse(p, name);
    silt_relay_break(&p->relay);
}

/* Judging */

static bool is_web(uint16_t port)
{
    return port == HTTP || port == HTTPS;
}

/* 0: allowed at this address. */
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
    return silt_dns_pins_has(&p->from->pins, text, &p->address, silt_clock_ms())
               ? 0
               : SILT_REFUSED_MISMATCH;
}

static enum silt_policy_verdict reach(const struct passage *p)
{
    return silt_dns_pins_reach(&p->from->pins, p->from->policy, &p->address, p->port,
                               silt_clock_ms());
}

/* false: the connection is over. */
static bool on_named(struct passage *p)
{
    enum silt_egress_reason why = judge_name(p, p->inspect.name);
    if (why != 0) {
        refuse(p, p->by == BY_NAME ? SILT_REFUSED_SECOND : why, p->inspect.name);
        return false;
    }
    /* A second ClientHello is not a second request. */
    if (p->by != BY_NAME || p->inspect.state != SILT_PROTOCOL_SNIFF_HELLO)
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

/* false: the connection is over. */
static bool judge(struct passage *p)
{
    while (p->held.len > 0) {
        size_t len = 0;
        switch (silt_protocol_sniff_next(&p->inspect, silt_buf_slice(&p->held), &len)) {
        case SILT_PROTOCOL_SNIFF_MORE:
            if (p->held.len < SILT_PROTOCOL_SNIFF_HELD_MAX)
                return true;
            refuse(p, SILT_REFUSED_PROTOCOL, "");
            return false;
        case SILT_PROTOCOL_SNIFF_PASS:
            break;
        case SILT_PROTOCOL_SNIFF_NAMED:
            if (!on_named(p))
                return false;
            break;
        case SILT_PROTOCOL_SNIFF_NAMELESS:
            if (!on_nameless(p))
                return false;
            break;
        case SILT_PROTOCOL_SNIFF_REFUSE:
            refuse(p, p->inspect.reason, p->inspect.name);
            return false;
        }
        release(p, len);
    }
    if (p->held.cap > SILT_RELAY_KEEP)
        silt_buf_fini(&p->held);
    return true;
}

/* Bytes */

static bool is_free(const struct passage *p)
{
    return p->inspect.state == SILT_PROTOCOL_SNIFF_FREE;
}

/* Bytes from the sandbox. */
static void on_said(struct passage *p, silt_slice bytes)
{
    if (is_free(p) && p->held.len == 0) {
        silt_relay_put(&p->relay, SILT_RELAY_SERVER, bytes);
        return;
    }
    silt_buf_add(&p->held, bytes);
    if (judge(p))
        silt_relay_push(&p->relay, SILT_RELAY_SERVER);
}

/* The response to an upgrade decides how the bytes after it, including those held, are checked. */
static void hear(struct passage *p, silt_slice said)
{
    if (p->inspect.state != SILT_PROTOCOL_SNIFF_TURN)
        return;
    silt_protocol_sniff_hear(&p->inspect, said);
    if (p->inspect.state != SILT_PROTOCOL_SNIFF_TURN && p->held.len > 0)
        on_said(p, (silt_slice){"", 0});
}

static size_t room(struct silt_relay *r, enum silt_relay_end from)
{
    const struct passage *p = silt_outer(r, struct passage, relay);
    bool judged = from == SILT_RELAY_CLIENT && !(is_free(p) && silt_relay_is_connected(r));
    return judged ? SILT_PROTOCOL_SNIFF_HELD_MAX - p->held.len
                  : silt_relay_share(KEPT_ALL, p->all->count, PIECE);
}

static void filter(struct silt_relay *r, enum silt_relay_end from, silt_slice bytes)
{
    struct passage *p = silt_outer(r, struct passage, relay);
    if (from == SILT_RELAY_CLIENT) {
        on_said(p, bytes);
        return;
    }
    p->answered = true;
    silt_relay_put(r, SILT_RELAY_CLIENT, bytes);
    if (!r->over)
        hear(p, bytes);
}

static void on_ended(struct silt_relay *r, enum silt_relay_end from)
{
    struct passage *p = silt_outer(r, struct passage, relay);
    if (from == SILT_RELAY_CLIENT && p->held.len > 0)
        refuse(p, SILT_REFUSED_SILENCE, ""); /* ended before the protocol was recognised */
}

static const struct silt_relay_owner owner = {
    .room = room, .filter = filter, .on_ended = on_ended, .on_over = on_over};

static void on_socket(struct silt_dial_client_want *want, int fd)
{
    struct passage *p = silt_outer(want, struct passage, want);
    socklen_t len =
        p->address.family == 4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    silt_relay_connect(&p->relay, fd, (const struct sockaddr *)&p->to, len);
}

static void on_late(struct silt_timer *t)
{
    struct passage *p = silt_outer(t, struct passage, late);
    if (!silt_relay_is_connected(&p->relay))
        silt_relay_break(&p->relay);
    else if (p->by == BY_NOTHING_YET && is_web(p->port))
        refuse(p, SILT_REFUSED_SILENCE, "");
    else
        silt_relay_limit(&p->relay, IDLE_MS, HALF_MS);
}

/* The beginning */

static void init(struct passage *p, struct silt_allow_conns *all,
                 const struct silt_allow_conn_caller *c)
{
    *p = (struct passage){
        .all = all,
        .from = c->link,
        .late = {.on_time = on_late},
        .grave = {.free = free_passage},
        .want = {.family = c->address.family == 4 ? AF_INET : AF_INET6, .on_socket = on_socket},
        .to = c->to,
        .address = c->address,
        .port = c->port,
        .by = c->by_network ? BY_NETWORK : BY_NOTHING_YET};
    silt_buf_init(&p->held, SILT_PROTOCOL_SNIFF_HELD_MAX);
    silt_buf_init(&p->up, PIECE + SILT_PROTOCOL_SNIFF_HELD_MAX);
    silt_buf_init(&p->down, PIECE);
    silt_relay_init(&p->relay, all->loop, &owner);
    silt_relay_attach(&p->relay, SILT_RELAY_CLIENT, c->fd, &p->down,
                      &c->link->counts.received_bytes);
    silt_relay_attach(&p->relay, SILT_RELAY_SERVER, -1, &p->up, &c->link->counts.sent_bytes);
    silt_list_init(&p->link);
    silt_list_init(&p->want.link);
}

void silt_allow_conn_begin(struct silt_allow_conns *all, const struct silt_allow_conn_caller *c)
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
        p->inspect.state = SILT_PROTOCOL_SNIFF_FREE;
        c->link->counts.requests++;
    }
    silt_loop_after(all->loop, &p->late, BEGIN_MS);
    silt_relay_settle(&p->relay);
    silt_dial_client_ask(all->dialer, &p->want);
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

void silt_allow_conns_reconsider(struct silt_egress_link *link)
{
    silt_list_each(it, &link->passages)
    {
        struct passage *p = silt_outer(it, struct passage, link);
        if (!may_stay(p))
            silt_relay_break(&p->relay);
    }
}

void silt_allow_conns_cut(struct silt_egress_link *link)
{
    silt_list_each(it, &link->passages)
        silt_relay_break(&silt_outer(it, struct passage, link)->relay);
}

void silt_allow_conns_free(struct silt_egress_link *link)
{
    silt_list_each(it, &link->passages)
    {
        struct passage *p = silt_outer(it, struct passage, link);
        p->by = BY_NETWORK;
        p->inspect.state = SILT_PROTOCOL_SNIFF_FREE;
        if (judge(p)) /* releases what was held */
            silt_relay_settle(&p->relay);
    }
}
