/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/track.h"
#include "base/own.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int open_all(struct silt_track *t, struct silt_error *e)
{
    t->look = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (t->look < 0)
        return silt_fail_errno(e, "open a socket");
    return silt_conntrack_open(&t->inside, e);
}

int silt_track_open(struct silt_track *t, const struct silt_net_gate *g, struct silt_error *e)
{
    *t = (struct silt_track){.gate = g, .inside = {-1, -1}, .outside = {-1, -1}, .look = -1};
    if (g->ns < 0)
        return 0;
    if (silt_conntrack_open(&t->outside, e) < 0)
        return -1;
    if (setns(g->ns, CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "enter the gate");
    int done = open_all(t, e);
    if (setns(g->home, CLONE_NEWNET) < 0)
        abort(); /* never continue outside our own namespace */
    return done;
}

static bool is_gone(struct silt_track *t, uint32_t number)
{
    struct ifreq q = {.ifr_ifindex = (int)silt_plan_link_index(number)};
    if (t->number != number)
        t->gone = ioctl(t->look, SIOCGIFNAME, &q) < 0 && errno == ENODEV;
    t->number = number;
    return t->gone != 0;
}

static bool goes(void *context, const struct silt_tracked *entry)
{
    struct silt_track *t = context;
    silt_ip from = {.family = entry->family};
    memcpy(from.bytes, entry->from, (size_t)silt_ip_bits(entry->family) / 8);
    uint32_t number = silt_plan_number(&t->gate->plan, &from);
    if (number == 0 || !is_gone(t, number))
        return false;
    silt_conntrack_forget_next(&t->outside, entry);
    return true;
}

uint32_t silt_track_sweep(struct silt_track *t)
{
    if (t->inside.list < 0)
        return 0;
    t->number = 0;
    uint32_t dropped = silt_conntrack_forget(&t->inside, AF_INET, goes, t);
    return dropped
           + (t->gate->plan.ipv6 ? silt_conntrack_forget(&t->inside, AF_INET6, goes, t) : 0);
}
