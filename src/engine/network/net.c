/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/net.h"
#include "base/fd.h"
#include "engine/network/captive.h"
#include "engine/network/sock_destroy.h"
#include "engine/core/mnt.h"
#include "base/test_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define INSIDE "eth0"

enum { TRIES_MAX = 65536, LOOPBACK = 1 /* its index */ };

static void go_home(const struct silt_net_gate *g)
{
    if (setns(g->home, CLONE_NEWNET) < 0)
        abort(); /* never continue in a foreign namespace */
}

/* Numbers are reused late, so that peers have forgotten the previous one; workers start at
 * different numbers, so that they rarely collide. */
int silt_net_gate_open(struct silt_net_gate *g, struct silt_error *e)
{
    struct silt_rtnl_counters up = {0};
    if (g->ns < 0)
        return 0;
    if (getrandom(&g->next, sizeof(g->next), 0) != sizeof(g->next))
        return silt_fail_errno(e, "get a random number");
    if (setns(g->ns, CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "enter the gate");
    int done = silt_rtnl_open(&g->inside, e);
    if (done == 0)
        done = silt_rtnl_counters(&g->inside, if_nametoindex(SILT_PLAN_UPLINK), &up, e);
    go_home(g);
    g->mtu = up.mtu;
    return done;
}

/* In the new namespace. */

/* The kernel refuses a number that is taken, so trying is how we allocate one. */
static int make_link(struct silt_net_gate *g, struct silt_rtnl *here, enum silt_net_mode mode,
                     uint32_t *ret_number, struct silt_error *e)
{
    uint32_t numbers = g->plan.links - SILT_PLAN_LINK_FIRST;
    for (uint32_t i = 0; i < numbers && i < TRIES_MAX; i++) {
        char name[IF_NAMESIZE];
        uint32_t number = SILT_PLAN_LINK_FIRST + g->next++ % numbers;
        uint32_t index = silt_plan_link_index(number);
        silt_plan_link_name(number, name);
        struct silt_rtnl_end ends[2] = {
            {.name = INSIDE, .index = index, .ns = -1},
            {.name = name, .index = index, .group = mode, .ns = g->ns},
        };
        if (silt_rtnl_pair(here, ends, g->mtu, e) == 0) {
            *ret_number = number;
            return 0;
        }
        if (e->sys != EEXIST && e->sys != EBUSY)
            return -1;
    }
    return silt_fail(e, SILT_LIMIT, "no address is left for a link");
}

static int address_link(struct silt_net_gate *g, struct silt_rtnl *here, uint32_t number,
                        int family, struct silt_error *e)
{
    uint32_t index = silt_plan_link_index(number);
    silt_ip own = silt_plan_ip(&g->plan, family, number);
    silt_ip gateway = silt_plan_ip(&g->plan, family, 1);
    if (silt_rtnl_address(here, index, own, (unsigned)silt_ip_bits(family), e) < 0)
        return -1;
    if (silt_rtnl_route(here, index, NULL, &gateway, e) < 0)
        return -1;
    return silt_rtnl_route(&g->inside, index, &own, NULL, e);
}

static int add_link(struct silt_net_gate *g, struct silt_rtnl *here, enum silt_net_mode mode,
                    struct silt_net *n, struct silt_error *e)
{
    uint32_t number;
    if (g->plan.ipv6
        && (silt_fd_put(AT_FDCWD, "/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1", e) < 0
            || silt_fd_put(AT_FDCWD, "/proc/sys/net/ipv6/conf/default/accept_ra", "0", e) < 0))
        return -1;
    if (make_link(g, here, mode, &number, e) < 0)
        return -1;
    if (silt_rtnl_raise(&g->inside, silt_plan_link_index(number), e) < 0)
        return -1;
    if (address_link(g, here, number, AF_INET, e) < 0)
        return -1;
    if (g->plan.ipv6 && address_link(g, here, number, AF_INET6, e) < 0)
        return -1;
    n->index = silt_plan_link_index(number);
    return 0;
}

static int raise_links(struct silt_net_gate *g, enum silt_net_mode mode, struct silt_net *n,
                       struct silt_error *e)
{
    struct silt_rtnl here;
    if (silt_rtnl_open(&here, e) < 0)
        return -1;
    int done = silt_rtnl_raise(&here, LOOPBACK, e);
    if (done == 0 && g->ns >= 0 && mode != SILT_NET_CAPTIVE)
        done = add_link(g, &here, mode, n, e);
    silt_rtnl_close(&here);
    if (done == 0 && mode == SILT_NET_CAPTIVE) {
        n->captive = true;
        done = silt_captive_furnish(g->plan.ipv6, e);
    }
    return done;
}

/* /proc/sys/net shows the namespace of the opening process. */
static int furnish(struct silt_net_gate *g, enum silt_net_mode mode, struct silt_net *n,
                   struct silt_error *e)
{
    unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    if (!silt_without("masks"))
        attributes |= MOUNT_ATTR_RDONLY;
    if (raise_links(g, mode, n, e) < 0)
        return -1;
    if (silt_fd_put(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", e) < 0)
        return -1;
    if (silt_fd_put(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", "0 2147483647", e) < 0)
        return -1;
    return silt_mnt_make("sysfs", attributes, NULL, &n->sysfs, e);
}

int silt_net_make(struct silt_net_gate *g, enum silt_net_mode mode, struct silt_net *ret,
                  struct silt_error *e)
{
    struct silt_net n = {.ns = -1, .sysfs = -1};
    if (unshare(CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "make a network namespace");
    int done = furnish(g, mode, &n, e);
    if (done == 0) {
        n.ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        if (n.ns < 0)
            done = silt_fail_errno(e, "open the network namespace");
    }
    go_home(g);
    if (done < 0) {
        silt_net_close(&n);
        return silt_because(e, "make a network namespace");
    }
    *ret = n;
    return 0;
}

void silt_net_close(struct silt_net *n)
{
    silt_close_fd(&n->ns);
    silt_close_fd(&n->sysfs);
    n->index = 0;
}

int silt_net_set_mode(struct silt_net_gate *g, const struct silt_net *n, enum silt_net_mode mode,
                      struct silt_error *e)
{
    return n->index == 0 ? 0 : silt_rtnl_set_group(&g->inside, n->index, mode, e);
}

/* Running sandboxes. While we are inside, the namespace cannot end, so the link's number cannot be
 * reused: whatever happens to the process, we never touch another sandbox's link. */

static int enter(struct silt_net_gate *g, int pidfd, uint32_t *ret_index, struct silt_error *e)
{
    if (g->ns < 0)
        return silt_fail(e, SILT_UNAVAILABLE, "there is no network on this machine");
    if (setns(pidfd, CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "enter the sandbox's network");
    *ret_index = if_nametoindex(INSIDE);
    if (*ret_index > SILT_PLAN_INDEX_BASE)
        return 0;
    go_home(g);
    return silt_fail(e, SILT_UNAVAILABLE, "the sandbox has no network link");
}

/* A new siltd sets the mode that is already there: this cuts nothing. Direct connections cannot
 * continue through silt-proxy. */
static int change(struct silt_net_gate *g, uint32_t index, enum silt_net_mode mode,
                  struct silt_error *e)
{
    struct silt_rtnl_counters before;
    if (silt_rtnl_counters(&g->inside, index, &before, e) < 0)
        return -1;
    if (silt_rtnl_set_group(&g->inside, index, mode, e) < 0)
        return -1;
    if (mode != SILT_NET_PUBLIC && before.group != (uint32_t)mode)
        silt_sock_destroy_outward();
    return 0;
}

int silt_net_change_mode(struct silt_net_gate *g, int pidfd, enum silt_net_mode mode,
                         uint32_t *ret_link, struct silt_error *e)
{
    uint32_t index;
    if (enter(g, pidfd, &index, e) < 0)
        return -1;
    int done = change(g, index, mode, e);
    go_home(g);
    *ret_link = index - SILT_PLAN_INDEX_BASE;
    return done;
}

int silt_net_counters(struct silt_net_gate *g, int pidfd, struct silt_priv_netstat *ret,
                      uint32_t *ret_link, struct silt_error *e)
{
    struct silt_rtnl_counters c;
    uint32_t index;
    if (enter(g, pidfd, &index, e) < 0)
        return -1;
    int done = silt_rtnl_counters(&g->inside, index, &c, e);
    go_home(g);
    if (done < 0)
        return -1;
    *ret_link = index - SILT_PLAN_INDEX_BASE;
    *ret = (struct silt_priv_netstat){
        .mode = c.group, /* received by the gateway means sent by the sandbox */
        .sent_bytes = c.rx_bytes,
        .sent_packets = c.rx_packets,
        .received_bytes = c.tx_bytes,
        .received_packets = c.tx_packets};
    return 0;
}
