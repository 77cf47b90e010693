/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/gateway.h"
#include "base/fd.h"
#include "engine/network/nflog.h"
#include "engine/network/nft.h"
#include "engine/network/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { RULES_MAX = 64 << 10, CONNTRACK_PRESET = 65536, NUMBER_MAX = 32 };

struct making {
    struct silt_gateway *gate;
    const struct silt_gateway_config *config;
    struct silt_plan plan;
    int home;
};

/* In the gateway's namespace. */

struct setting {
    const char *path, *value;
    bool must;
};

/* Every refusal must be sent at once: the kernel's rate limits for ICMP errors are meant for
 * routers facing strangers. Interfaces have only the addresses we assign. Nearly every packet is
 * forwarded, so early socket lookup is turned off. */
static const struct setting settings4[] = {
    {"/proc/sys/net/ipv4/ip_forward", "1", true},
    {"/proc/sys/net/ipv4/conf/all/send_redirects", "0", false},
    {"/proc/sys/net/ipv4/conf/default/send_redirects", "0", false},
    {"/proc/sys/net/ipv4/conf/all/accept_source_route", "0", false},
    {"/proc/sys/net/ipv4/icmp_ratelimit", "0", false},
    {"/proc/sys/net/ipv4/ip_early_demux", "0", false}, /* IPv4 and IPv6 */
};
static const struct setting settings6[] = {
    {"/proc/sys/net/ipv6/conf/all/forwarding", "1", true},
    {"/proc/sys/net/ipv6/conf/default/accept_ra", "0", false},
    {"/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1", false},
    {"/proc/sys/net/ipv6/icmp/ratelimit", "0", false},
};

static int put_settings(const struct setting *list, size_t count, struct silt_error *e)
{
    for (size_t i = 0; i < count; i++)
        if (silt_fd_put(AT_FDCWD, list[i].path, list[i].value, e) < 0
            && (list[i].must || e->sys != ENOENT))
            return -1;
    return 0;
}

static int load_rules(const struct making *m, struct silt_error *e)
{
    silt_auto_buf text;
    silt_buf_init(&text, RULES_MAX);
    struct silt_rules_gate r = {.open = m->config->open,
                                .connections = m->config->connections,
                                .plan = &m->plan,
                                .ipv6 = m->gate->outside.ipv6};
    silt_rules_gate(&text, &r);
    if (text.broken)
        return silt_fail(e, SILT_LIMIT, "rules of more than %d bytes", RULES_MAX);
    return silt_nft_load(silt_buf_slice(&text), e);
}

/* The gateway and the machine both track every connection, each in a table of this size: sandboxes
 * together use at most half of it. The file exists once the first rules are loaded. */
static uint32_t crowd_of(const struct making *m)
{
    struct silt_error ignored;
    char *text = NULL;
    size_t len;
    uint64_t most = CONNTRACK_PRESET;
    if (m->config->connections_all != 0)
        return m->config->connections_all;
    if (silt_fd_read_file(AT_FDCWD, "/proc/sys/net/netfilter/nf_conntrack_max", NUMBER_MAX, &text,
                          &len, &ignored)
        == 0)
        (void)silt_slice_to_u64(silt_slice_trim((silt_slice){text, len}), 1, UINT32_MAX, &most,
                                &ignored);
    free(text);
    return (uint32_t)(most / 4);
}

static int load_crowd_rules(const struct making *m, struct silt_error *e)
{
    silt_auto_buf text;
    silt_buf_init(&text, RULES_MAX);
    silt_rules_crowd(&text, crowd_of(m));
    return silt_nft_load(silt_buf_slice(&text), e);
}

/* All links have the same gateway address, on loopback: the kernel answers for it everywhere. */
static int give_address(struct silt_rtnl *r, const struct making *m, struct silt_error *e)
{
    if (silt_rtnl_raise(r, 1, e) < 0)
        return -1;
    if (silt_rtnl_address(r, 1, silt_plan_ip(&m->plan, AF_INET, 1), 32, e) < 0)
        return -1;
    return m->plan.ipv6 ? silt_rtnl_address(r, 1, silt_plan_ip(&m->plan, AF_INET6, 1), 128, e) : 0;
}

struct wanted {
    int type;
    uint16_t port;
};

static int listen_at(const struct making *m, int family, const struct wanted *w, int *ret_fd,
                     struct silt_error *e)
{
    silt_ip ip = silt_plan_ip(&m->plan, family, 1);
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } at = {.any = {.sa_family = (sa_family_t)family}};
    silt_auto_fd fd = socket(family, w->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (family == AF_INET) {
        at.four.sin_port = htons(w->port);
        memcpy(&at.four.sin_addr, ip.bytes, 4);
    } else {
        at.six.sin6_port = htons(w->port);
        memcpy(&at.six.sin6_addr, ip.bytes, 16);
    }
    if (fd < 0 || bind(fd, &at.any, family == AF_INET ? sizeof(at.four) : sizeof(at.six)) < 0
        || (w->type == SOCK_STREAM && listen(fd, SOMAXCONN) < 0))
        return silt_fail_errno(e, "listen at the gateway");
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

static int listen_all(struct making *m, int family, struct silt_error *e)
{
    static const struct wanted wanted[SILT_SUPER_SOCKET_MAX] = {
        [SILT_SUPER_SOCKET_DNS_UDP] = {SOCK_DGRAM, SILT_RULES_DNS_PORT},
        [SILT_SUPER_SOCKET_DNS_TCP] = {SOCK_STREAM, SILT_RULES_DNS_PORT},
        [SILT_SUPER_SOCKET_ALLOW_UDP] = {SOCK_DGRAM, SILT_RULES_ALLOW_DNS_PORT},
        [SILT_SUPER_SOCKET_ALLOW_TCP] = {SOCK_STREAM, SILT_RULES_ALLOW_DNS_PORT},
        [SILT_SUPER_SOCKET_ALLOW] = {SOCK_STREAM, SILT_RULES_ALLOW_PORT},
    };
    struct silt_gateway *g = m->gate;
    for (int i = 0; i < SILT_SUPER_SOCKET_MAX; i++, g->nsockets++)
        if (listen_at(m, family, &wanted[i], &g->sockets[g->nsockets], e) < 0)
            return -1;
    return 0;
}

static int furnish(struct making *m, struct silt_error *e)
{
    struct silt_rtnl r;
    if (put_settings(settings4, SILT_COUNT(settings4), e) < 0)
        return -1;
    if (m->plan.ipv6 && put_settings(settings6, SILT_COUNT(settings6), e) < 0)
        return -1;
    if (load_rules(m, e) < 0 || load_crowd_rules(m, e) < 0 || silt_rtnl_open(&r, e) < 0)
        return -1;
    int done = give_address(&r, m, e);
    silt_rtnl_close(&r);
    if (done < 0 || listen_all(m, AF_INET, e) < 0)
        return -1;
    if (m->plan.ipv6 && listen_all(m, AF_INET6, e) < 0)
        return -1;
    return silt_nflog_open(&m->gate->log, e);
}

static int connect_family(struct silt_rtnl *r, const struct making *m, int family,
                          struct silt_error *e)
{
    uint32_t up = if_nametoindex(SILT_PLAN_UPLINK);
    unsigned bits = family == AF_INET ? SILT_PLAN_UPLINK_BITS4 : SILT_PLAN_UPLINK_BITS6;
    silt_ip outside = silt_plan_uplink(&m->plan, family, true);
    if (silt_rtnl_address(r, up, silt_plan_uplink(&m->plan, family, false), bits, e) < 0)
        return -1;
    return silt_rtnl_route(r, up, NULL, &outside, e);
}

static int connect_uplink(const struct making *m, struct silt_error *e)
{
    struct silt_rtnl r;
    if (silt_rtnl_open(&r, e) < 0)
        return -1;
    int done = silt_rtnl_raise(&r, if_nametoindex(SILT_PLAN_UPLINK), e);
    if (done == 0)
        done = connect_family(&r, m, AF_INET, e);
    if (done == 0 && m->plan.ipv6)
        done = connect_family(&r, m, AF_INET6, e);
    silt_rtnl_close(&r);
    return done;
}

/* From outside. */

static void go_home(const struct making *m)
{
    if (setns(m->home, CLONE_NEWNET) < 0)
        abort(); /* what follows is meant for the machine's own network */
}

static int make_namespace(struct making *m, struct silt_error *e)
{
    if (unshare(CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "make a network namespace");
    int done = furnish(m, e);
    if (done == 0) {
        m->gate->ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        if (m->gate->ns < 0)
            done = silt_fail_errno(e, "open the network namespace");
    }
    go_home(m);
    return done;
}

static int make_uplink(struct making *m, struct silt_error *e)
{
    struct silt_gateway *g = m->gate;
    struct silt_rtnl_end ends[2] = {
        {.name = g->outside.uplink, .ns = -1},
        {.name = SILT_PLAN_UPLINK, .group = SILT_PLAN_UPLINK_GROUP, .ns = g->ns}};
    struct silt_rtnl r;
    if (silt_rtnl_open(&r, e) < 0)
        return -1;
    int done = silt_rtnl_pair(&r, ends, g->outside.mtu, e);
    silt_rtnl_close(&r);
    if (done < 0)
        return -1;
    if (setns(g->ns, CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "enter the gate");
    done = connect_uplink(m, e);
    go_home(m);
    return done;
}

static int make(struct making *m, struct silt_error *e)
{
    const struct silt_gateway_config *c = m->config;
    struct silt_gateway *g = m->gate;
    if (silt_plan_make(c->pool4, c->pool6, c->block, &m->plan, e) < 0)
        return -1;
    if (silt_rules_check_open(c->open, e) < 0)
        return -1;
    silt_uplink_clear(&g->outside); /* left by an instance that was killed */
    silt_uplink_look(&g->outside);
    if (make_namespace(m, e) < 0)
        return -1;
    if (make_uplink(m, e) < 0)
        return -1;
    g->plan = m->plan;
    return silt_uplink_open(&g->outside, &m->plan, e);
}

int silt_gateway_open(struct silt_gateway *g, const struct silt_gateway_config *c,
                      struct silt_error *e)
{
    silt_auto_fd home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    struct making m = {.gate = g, .config = c, .home = home};
    *g = (struct silt_gateway){.ns = -1, .log = -1};
    if (home < 0)
        return silt_fail_errno(e, "open our own network namespace");
    silt_uplink_init(&g->outside, c->instance, c->block, c->run);
    if (make(&m, e) == 0)
        return 0;
    silt_gateway_close(g);
    return silt_because(e, "make the gate of the network");
}

int silt_gateway_resume(struct silt_gateway *g, const struct silt_gateway_config *c,
                        struct silt_error *e)
{
    if (silt_plan_make(c->pool4, c->pool6, c->block, &g->plan, e) < 0)
        return silt_because(e, "resume the gate of the network");
    silt_uplink_init(&g->outside, c->instance, c->block, c->run);
    silt_uplink_resume(&g->outside);
    return 0;
}

void silt_gateway_close(struct silt_gateway *g)
{
    if (g->outside.uplink[0] != 0)
        silt_uplink_clear(&g->outside);
    for (; g->nsockets > 0; g->nsockets--)
        silt_close_fd(&g->sockets[g->nsockets - 1]);
    silt_close_fd(&g->log);
    silt_close_fd(&g->ns);
}

int silt_gateway_listen(const struct silt_gateway *g, int *ret_fd, struct silt_error *e)
{
    return g->ns < 0 ? silt_fail(e, SILT_UNAVAILABLE, "there is no gate")
                     : silt_devices_listen(ret_fd, e);
}

int silt_gateway_follow(struct silt_gateway *g, struct silt_error *e)
{
    if (silt_uplink_follow(&g->outside, &g->plan, e) < 0)
        return silt_because(e, "follow the machine's routes");
    return 0;
}
