/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/track.h"
#include "base/own.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { ROOM = 65536, ENTRY_MAX = 2048, ANSWER_S = 10 };

static int open_one(int *ret_fd, struct silt_error *e)
{
    struct timeval patience = {.tv_sec = ANSWER_S};
    *ret_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    if (*ret_fd < 0
        || setsockopt(*ret_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
        return silt_fail_errno(e, "open conntrack");
    return 0;
}

static int open_all(struct silt_track *t, struct silt_error *e)
{
    t->look = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (t->look < 0)
        return silt_fail_errno(e, "open a socket");
    return open_one(&t->list, e) < 0 || open_one(&t->drop, e) < 0 ? -1 : 0;
}

int silt_track_open(struct silt_track *t, const struct silt_net_gate *g, struct silt_error *e)
{
    *t = (struct silt_track){.gate = g, .list = -1, .drop = -1, .look = -1};
    if (g->ns < 0)
        return 0;
    if (setns(g->ns, CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "enter the gate");
    int done = open_all(t, e);
    if (setns(g->home, CLONE_NEWNET) < 0)
        abort(); /* not at home nothing of ours may go on */
    return done;
}

static struct nlmsghdr *begin(char *room, uint16_t type, uint16_t flags, uint8_t family)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = (uint16_t)(NFNL_SUBSYS_CTNETLINK << 8 | type);
    h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    struct nfgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
    g->nfgen_family = family;
    g->version = NFNETLINK_V0;
    return h;
}

struct search {
    uint16_t type;
    const struct nlattr *found;
};

static int on_attribute(const struct nlattr *a, void *context)
{
    struct search *s = context;
    if (mnl_attr_get_type(a) == s->type)
        s->found = a;
    return MNL_CB_OK;
}

/* The attribute of that type among those of the nest, or NULL. */
static const struct nlattr *find(const struct nlattr *nest, uint16_t type)
{
    struct search s = {.type = type};
    if (nest != NULL)
        (void)mnl_attr_parse_nested(nest, on_attribute, &s);
    return s.found;
}

/* The number of the link that a source address belongs to; 0: it is none of the sandboxes'. */
static uint32_t number_of(const struct silt_plan *p, int family, const uint8_t *from)
{
    size_t end = (size_t)silt_ip_bits(family) / 8;
    uint32_t number = 0;
    for (size_t i = end - 4; i < end; i++)
        number = number << 8 | from[i];
    if (family == AF_INET)
        number &= p->links; /* a row of ones */
    silt_ip same = silt_plan_ip(p, family, number);
    return memcmp(same.bytes, from, end) == 0 && number >= SILT_PLAN_LINK_FIRST ? number : 0;
}

static bool is_gone(struct silt_track *t, uint32_t number)
{
    struct ifreq q = {.ifr_ifindex = (int)silt_plan_link_index(number)};
    if (t->number != number)
        t->gone = ioctl(t->look, SIOCGIFNAME, &q) < 0 && errno == ENODEV;
    t->number = number;
    return t->gone != 0;
}

static int drop(struct silt_track *t, uint8_t family, const struct nlattr *tuple)
{
    char room[ENTRY_MAX] __attribute__((aligned(8)));
    if (mnl_attr_get_len(tuple) > ENTRY_MAX / 2)
        return -1;
    struct nlmsghdr *h = begin(room, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, family);
    mnl_attr_put(h, CTA_TUPLE_ORIG | NLA_F_NESTED, mnl_attr_get_payload_len(tuple),
                 mnl_attr_get_payload(tuple));
    if (send(t->drop, room, h->nlmsg_len, 0) < 0)
        return -1;
    ssize_t n = recv(t->drop, room, sizeof(room), 0);
    return n > 0 && mnl_cb_run(room, (size_t)n, 0, 0, NULL, NULL) >= 0 ? 0 : -1;
}

struct sweep {
    struct silt_track *track;
    int family;
    uint32_t dropped;
};

static int on_entry(const struct nlmsghdr *h, void *context)
{
    struct sweep *s = context;
    bool four = s->family == AF_INET;
    struct search tuple = {.type = CTA_TUPLE_ORIG};
    (void)mnl_attr_parse(h, sizeof(struct nfgenmsg), on_attribute, &tuple);
    const struct nlattr *ip = find(tuple.found, CTA_TUPLE_IP);
    const struct nlattr *from = find(ip, four ? CTA_IP_V4_SRC : CTA_IP_V6_SRC);
    if (from == NULL || mnl_attr_get_payload_len(from) < (four ? 4 : 16))
        return MNL_CB_OK;
    uint32_t number = number_of(&s->track->gate->plan, s->family, mnl_attr_get_payload(from));
    if (number != 0 && is_gone(s->track, number))
        s->dropped += drop(s->track, (uint8_t)s->family, tuple.found) == 0;
    return MNL_CB_OK;
}

static uint32_t sweep_family(struct silt_track *t, int family)
{
    static char room[ROOM] __attribute__((aligned(8)));
    struct sweep s = {.track = t, .family = family};
    struct nlmsghdr *h = begin(room, IPCTNL_MSG_CT_GET, NLM_F_DUMP, (uint8_t)family);
    int more = send(t->list, room, h->nlmsg_len, 0) < 0 ? MNL_CB_ERROR : MNL_CB_OK;
    while (more > MNL_CB_STOP) {
        ssize_t n = recv(t->list, room, sizeof(room), 0);
        more = n <= 0 ? MNL_CB_ERROR : mnl_cb_run(room, (size_t)n, 0, 0, on_entry, &s);
    }
    return s.dropped;
}

uint32_t silt_track_sweep(struct silt_track *t)
{
    if (t->list < 0)
        return 0;
    t->number = 0;
    uint32_t dropped = sweep_family(t, AF_INET);
    return dropped + (t->gate->plan.ipv6 ? sweep_family(t, AF_INET6) : 0);
}
