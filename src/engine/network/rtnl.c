/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/rtnl.h"
#include "base/own.h"
#include "base/test_switch.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum {
    ROOM = 1024,         /* of a message: ours have a handful of attributes */
    ANSWER_ROOM = 16384, /* a link's description */
    ANSWER_MS = 10000,   /* rtnetlink answers when its lock is free */
};

/* Locally administered, and the same for every end of every link. */
static const uint8_t hardware[6] = {0x02, 0x53, 0x49, 0x4c, 0x54, 0x01};

union message {
    struct nlmsghdr head;
    char room[ROOM];
};

int silt_rtnl_open(struct silt_rtnl *r, struct silt_error *e)
{
    struct timeval patience = {.tv_sec = ANSWER_MS / 1000};
    *r = (struct silt_rtnl){.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)};
    if (r->fd < 0)
        return silt_fail_errno(e, "open rtnetlink");
    if (setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0) {
        silt_rtnl_close(r);
        return silt_fail_errno(e, "set the patience of rtnetlink");
    }
    return 0;
}

void silt_rtnl_close(struct silt_rtnl *r)
{
    silt_close_fd(&r->fd);
}

static struct nlmsghdr *begin(union message *m, uint16_t type, uint16_t flags)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(m);
    h->nlmsg_type = type;
    h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    return h;
}

static struct nlmsghdr *begin_link(union message *m, uint16_t type, uint16_t flags, uint32_t index)
{
    struct nlmsghdr *h = begin(m, type, flags);
    struct ifinfomsg *i = mnl_nlmsg_put_extra_header(h, sizeof(*i));
    i->ifi_index = (int)index;
    return h;
}

/* The reply to the message just sent; *len is the buffer's size and becomes the reply's. */
static int receive(struct silt_rtnl *r, char *answer, size_t *len, struct silt_error *e)
{
    for (;;) {
        ssize_t n = recv(r->fd, answer, *len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return silt_fail_errno(e, "wait for rtnetlink");
        const struct nlmsghdr *h = (const void *)answer;
        if (!mnl_nlmsg_ok(h, (int)n))
            return silt_fail(e, SILT_PROTOCOL, "rtnetlink answers %zd bytes", n);
        if (h->nlmsg_seq != r->seq)
            continue; /* reply to a request that timed out */
        *len = (size_t)n;
        return 0;
    }
}

static int ask(struct silt_rtnl *r, struct nlmsghdr *h, char *answer, size_t *len,
               struct silt_error *e)
{
    h->nlmsg_seq = ++r->seq;
    if (send(r->fd, h, h->nlmsg_len, 0) < 0)
        return silt_fail_errno(e, "ask rtnetlink");
    if (receive(r, answer, len, e) < 0)
        return -1;
    const struct nlmsghdr *got = (const void *)answer;
    if (got->nlmsg_type != NLMSG_ERROR)
        return 0;
    const struct nlmsgerr *error = mnl_nlmsg_get_payload(got);
    if (error->error == 0)
        return 0;
    errno = -error->error;
    return silt_fail_errno(e, "rtnetlink");
}

static int tell(struct silt_rtnl *r, struct nlmsghdr *h, struct silt_error *e)
{
    char answer[ROOM * 2];
    size_t len = sizeof(answer);
    h->nlmsg_flags |= NLM_F_ACK;
    return ask(r, h, answer, &len, e);
}

static void put_end(struct nlmsghdr *h, const struct silt_rtnl_end *end, uint32_t mtu)
{
    mnl_attr_put_strz(h, IFLA_IFNAME, end->name);
    mnl_attr_put(h, IFLA_ADDRESS, sizeof(hardware), hardware);
    mnl_attr_put_u32(h, IFLA_MTU, mtu);
    mnl_attr_put_u32(h, IFLA_GROUP, end->group);
    /* The kernel's default is one queue per CPU, kilobytes each. */
    mnl_attr_put_u32(h, IFLA_NUM_TX_QUEUES, 1);
    mnl_attr_put_u32(h, IFLA_NUM_RX_QUEUES, 1);
    if (end->ns >= 0)
        mnl_attr_put_u32(h, IFLA_NET_NS_FD, (uint32_t)end->ns);
}

static void set_flags(struct ifinfomsg *i, uint32_t index, unsigned flags)
{
    i->ifi_index = (int)index;
    i->ifi_flags = flags;
    i->ifi_change = flags | IFF_MULTICAST;
}

int silt_rtnl_pair(struct silt_rtnl *r, const struct silt_rtnl_end ends[2], uint32_t mtu,
                   struct silt_error *e)
{
    union message m;
    unsigned quiet = silt_without("net_arp") ? 0 : IFF_NOARP;
    struct nlmsghdr *h = begin_link(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0);
    set_flags(mnl_nlmsg_get_payload(h), ends[0].index, IFF_UP | quiet);
    put_end(h, &ends[0], mtu);
    struct nlattr *info = mnl_attr_nest_start(h, IFLA_LINKINFO);
    mnl_attr_put_strz(h, IFLA_INFO_KIND, "veth");
    struct nlattr *data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
    struct nlattr *peer = mnl_attr_nest_start(h, VETH_INFO_PEER);
    set_flags(mnl_nlmsg_put_extra_header(h, sizeof(struct ifinfomsg)), ends[1].index, quiet);
    put_end(h, &ends[1], mtu);
    mnl_attr_nest_end(h, peer);
    mnl_attr_nest_end(h, data);
    mnl_attr_nest_end(h, info);
    if (tell(r, h, e) < 0)
        return silt_because(e, "make link %s", ends[1].name);
    return 0;
}

static size_t put_ip(struct nlmsghdr *h, uint16_t type, const silt_ip *ip)
{
    size_t len = (size_t)silt_ip_bits(ip->family) / 8;
    mnl_attr_put(h, type, len, ip->bytes);
    return len;
}

int silt_rtnl_address(struct silt_rtnl *r, uint32_t index, silt_ip ip, unsigned bits,
                      struct silt_error *e)
{
    union message m;
    struct nlmsghdr *h = begin(&m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
    struct ifaddrmsg *a = mnl_nlmsg_put_extra_header(h, sizeof(*a));
    *a = (struct ifaddrmsg){.ifa_family = (uint8_t)ip.family,
                            .ifa_prefixlen = (uint8_t)bits,
                            .ifa_flags = IFA_F_PERMANENT | IFA_F_NODAD,
                            .ifa_index = index};
    (void)put_ip(h, IFA_LOCAL, &ip);
    (void)put_ip(h, IFA_ADDRESS, &ip);
    if (tell(r, h, e) < 0)
        return silt_because(e, "give an interface its address");
    return 0;
}

int silt_rtnl_route(struct silt_rtnl *r, uint32_t index, const silt_ip *to, const silt_ip *via,
                    struct silt_error *e)
{
    union message m;
    const silt_ip *any = to != NULL ? to : via;
    struct nlmsghdr *h = begin(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
    struct rtmsg *t = mnl_nlmsg_put_extra_header(h, sizeof(*t));
    *t = (struct rtmsg){.rtm_family = (uint8_t)any->family,
                        .rtm_table = RT_TABLE_MAIN,
                        .rtm_protocol = RTPROT_STATIC,
                        .rtm_scope = via != NULL ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
                        .rtm_type = RTN_UNICAST,
                        .rtm_flags = via != NULL ? RTNH_F_ONLINK : 0};
    if (to != NULL)
        t->rtm_dst_len = (uint8_t)(put_ip(h, RTA_DST, to) * 8);
    if (via != NULL)
        (void)put_ip(h, RTA_GATEWAY, via);
    mnl_attr_put_u32(h, RTA_OIF, index);
    if (tell(r, h, e) < 0)
        return silt_because(e, "make a route");
    return 0;
}

int silt_rtnl_own_all(struct silt_rtnl *r, uint32_t index, const silt_ip *own, struct silt_error *e)
{
    union message m;
    struct nlmsghdr *h = begin(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
    struct rtmsg *t = mnl_nlmsg_put_extra_header(h, sizeof(*t));
    *t = (struct rtmsg){.rtm_family = (uint8_t)own->family,
                        .rtm_table = RT_TABLE_MAIN,
                        .rtm_protocol = RTPROT_STATIC,
                        .rtm_scope = RT_SCOPE_HOST,
                        .rtm_type = RTN_LOCAL};
    (void)put_ip(h, RTA_PREFSRC, own);
    mnl_attr_put_u32(h, RTA_OIF, index);
    if (tell(r, h, e) < 0)
        return silt_because(e, "make every address our own");
    return 0;
}

int silt_rtnl_set_group(struct silt_rtnl *r, uint32_t index, uint32_t group, struct silt_error *e)
{
    union message m;
    struct nlmsghdr *h = begin_link(&m, RTM_SETLINK, 0, index);
    mnl_attr_put_u32(h, IFLA_GROUP, group);
    if (tell(r, h, e) < 0)
        return silt_because(e, "set the group of link %u", index - SILT_PLAN_INDEX_BASE);
    return 0;
}

int silt_rtnl_raise(struct silt_rtnl *r, uint32_t index, struct silt_error *e)
{
    union message m;
    struct nlmsghdr *h = begin_link(&m, RTM_NEWLINK, 0, index);
    struct ifinfomsg *i = mnl_nlmsg_get_payload(h);
    i->ifi_flags = i->ifi_change = IFF_UP;
    if (tell(r, h, e) < 0)
        return silt_because(e, "bring interface %u up", index);
    return 0;
}

int silt_rtnl_delete(struct silt_rtnl *r, const char *name, struct silt_error *e)
{
    union message m;
    struct nlmsghdr *h = begin_link(&m, RTM_DELLINK, 0, 0);
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    if (tell(r, h, e) < 0)
        return silt_because(e, "delete link %s", name);
    return 0;
}

static int on_attribute(const struct nlattr *a, void *context)
{
    struct silt_rtnl_counters *c = context;
    struct rtnl_link_stats64 s;
    uint16_t len = mnl_attr_get_payload_len(a);
    switch (mnl_attr_get_type(a)) {
    case IFLA_GROUP:
        c->group = mnl_attr_get_u32(a);
        break;
    case IFLA_MTU:
        c->mtu = mnl_attr_get_u32(a);
        break;
    case IFLA_STATS64: /* kernels differ in length; these fields come first */
        memset(&s, 0, sizeof(s));
        memcpy(&s, mnl_attr_get_payload(a), len < sizeof(s) ? len : sizeof(s));
        c->rx_bytes = s.rx_bytes;
        c->rx_packets = s.rx_packets;
        c->tx_bytes = s.tx_bytes;
        c->tx_packets = s.tx_packets;
        break;
    default:
        break;
    }
    return MNL_CB_OK;
}

int silt_rtnl_counters(struct silt_rtnl *r, uint32_t index, struct silt_rtnl_counters *ret,
                       struct silt_error *e)
{
    union message m;
    static _Thread_local union {
        struct nlmsghdr head;
        char room[ANSWER_ROOM];
    } answer;
    size_t len = sizeof(answer);
    struct nlmsghdr *h = begin_link(&m, RTM_GETLINK, 0, index);
    if (ask(r, h, answer.room, &len, e) < 0)
        return silt_because(e, "look at interface %u", index);
    *ret = (struct silt_rtnl_counters){0};
    (void)mnl_attr_parse(&answer.head, sizeof(struct ifinfomsg), on_attribute, ret);
    return 0;
}
