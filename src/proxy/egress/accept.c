/* SPDX-License-Identifier: Apache-2.0 */
/* accept: accepts the connections that the gateway diverts: determines the sandbox and the original
 * destination, and refuses what no rule can allow. */
#include "base/clock.h"
#include "base/test_switch.h"
#include "proxy/core/relay.h"
#include "proxy/egress/allow_conn.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>

enum {
    MOST = 16384,      /* connections */
    FEW = 16,          /* of one sandbox */
    SPARE_FILES = 512, /* for everything else */
    BATCH = 64,        /* accepted per loop turn */
    PAUSE_MS = 100,
    ORIGINAL_DST = 80, /* SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST */
};

/* 0: allowed so far. */
static enum silt_egress_reason admit(const struct silt_allow_conns *all,
                                     struct silt_allow_conn_caller *c)
{
    const struct silt_egress_link *link = c->link;
    if (link->policy == NULL)
        return SILT_REFUSED_NO_POLICY;
    if (silt_ip_prefix_is_closed(&c->address, &all->links->open) && !silt_without("net_closed"))
        return SILT_REFUSED_CLOSED;
    enum silt_policy_verdict network = silt_policy_address(link->policy, &c->address, c->port);
    enum silt_policy_verdict name =
        silt_dns_pins_reach(&link->pins, link->policy, &c->address, c->port, silt_clock_ms());
    if (network != SILT_POLICY_YES && name != SILT_POLICY_YES)
        return network == SILT_POLICY_OTHER_PORT || name == SILT_POLICY_OTHER_PORT
                   ? SILT_REFUSED_PORT
                   : SILT_REFUSED_ADDRESS;
    struct silt_places places = {.most = all->most, .each = link->limit, .few = FEW};
    if (!silt_places_left(&places, all->count, link->counts.open))
        return SILT_REFUSED_LIMIT;
    c->by_network = network == SILT_POLICY_YES;
    return 0;
}

/* Takes fd. */
static void on_caller(struct silt_allow_conns *all, int fd, const struct sockaddr_storage *from)
{
    struct silt_allow_conn_caller c = {.fd = fd};
    socklen_t len = sizeof(c.to);
    int level = from->ss_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
    c.link = silt_link_table_at(all->links, silt_link_table_number(all->links, from));
    if (c.link == NULL || getsockopt(fd, level, ORIGINAL_DST, &c.to, &len) < 0) {
        silt_close_fd(&fd);
        return;
    }
    c.address = silt_link_table_address(&c.to);
    c.port = silt_link_table_port(&c.to);
    enum silt_egress_reason why = admit(all, &c);
    if (why == 0) {
        silt_allow_conn_begin(all, &c);
        return;
    }
    struct silt_egress_refusal r = {.protocol = SILT_EGRESS_TCP, .reason = (uint8_t)why};
    silt_link_table_put(&r, &c.address, c.port);
    silt_link_table_refuse(all->links, c.link, &r);
    silt_relay_reset_at_close(fd);
    silt_close_fd(&fd);
}

static void watch_listeners(struct silt_allow_conns *all, uint32_t events)
{
    for (size_t i = 0; i < all->nlisteners; i++)
        silt_loop_watch(all->loop, &all->listeners[i].watch, events);
}

static void on_pause_over(struct silt_timer *t)
{
    watch_listeners(silt_outer(t, struct silt_allow_conns, pause), EPOLLIN);
}

static void on_connection(struct silt_watch *w, uint32_t events)
{
    struct silt_allow_conns *all = silt_outer(w, struct silt_allow_conns_listener, watch)->all;
    (void)events;
    for (int i = 0; i < BATCH; i++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof(from);
        int fd = accept4(w->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            watch_listeners(all, 0);
            silt_loop_after(all->loop, &all->pause, PAUSE_MS);
        }
        if (fd < 0)
            return;
        on_caller(all, fd, &from);
    }
}

void silt_allow_conns_init(struct silt_allow_conns *p, size_t files)
{
    p->pause.on_time = on_pause_over;
    p->most = files > SPARE_FILES ? (files - SPARE_FILES) / 2 : 0;
    p->most = p->most < MOST ? p->most : MOST;
}

void silt_allow_conns_listen(struct silt_allow_conns *p, int fd)
{
    assert(p->nlisteners < SILT_ALLOW_CONNS_LISTENERS);
    struct silt_allow_conns_listener *l = &p->listeners[p->nlisteners++];
    *l = (struct silt_allow_conns_listener){.all = p,
                                            .watch = {.fd = fd, .on_ready = on_connection}};
    silt_loop_watch(p->loop, &l->watch, EPOLLIN);
}
