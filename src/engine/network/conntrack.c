/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/conntrack.h"
#include "base/own.h"

#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
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

int silt_conntrack_open(struct silt_conntrack *c, struct silt_error *e)
{
    *c = (struct silt_conntrack){.list = -1, .drop = -1};
    if (open_one(&c->list, e) == 0 && open_one(&c->drop, e) == 0)
        return 0;
    silt_conntrack_close(c);
    return -1;
}

void silt_conntrack_close(struct silt_conntrack *c)
{
    silt_close_fd(&c->list);
    silt_close_fd(&c->drop);
}

static struct nlmsghdr *begin(char *room, uint16_t type, uint16_t flags, int family)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = (uint16_t)(NFNL_SUBSYS_CTNETLINK << 8 | type);
    h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    struct nfgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
    g->nfgen_family = (uint8_t)family;
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

/* Finds the attribute of this type, with at least `least` bytes, in the nest; or NULL. */
static const struct nlattr *find(const struct nlattr *nest, uint16_t type, uint16_t least)
{
    struct search s = {.type = type};
    if (nest != NULL)
        (void)mnl_attr_parse_nested(nest, on_attribute, &s);
    return s.found != NULL && mnl_attr_get_payload_len(s.found) >= least ? s.found : NULL;
}

static bool drop(struct silt_conntrack *c, struct nlmsghdr *h)
{
    char answer[ENTRY_MAX] __attribute__((aligned(8)));
    if (send(c->drop, h, h->nlmsg_len, 0) < 0)
        return false;
    ssize_t n = recv(c->drop, answer, sizeof(answer), 0);
    return n > 0 && mnl_cb_run(answer, (size_t)n, 0, 0, NULL, NULL) >= 0;
}

struct sweep {
    struct silt_conntrack *conntrack;
    silt_conntrack_goes *goes;
    void *context;
    int family;
    uint32_t dropped;
};

static bool drop_this(struct sweep *s, const struct silt_tracked *t)
{
    char room[ENTRY_MAX] __attribute__((aligned(8)));
    if (mnl_attr_get_len(t->orig) > ENTRY_MAX / 2)
        return false;
    struct nlmsghdr *h = begin(room, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, s->family);
    mnl_attr_put(h, CTA_TUPLE_ORIG | NLA_F_NESTED, mnl_attr_get_payload_len(t->orig),
                 mnl_attr_get_payload(t->orig));
    return drop(s->conntrack, h);
}

static int on_entry(const struct nlmsghdr *h, void *context)
{
    struct sweep *s = context;
    bool four = s->family == AF_INET;
    struct search orig = {.type = CTA_TUPLE_ORIG}, reply = {.type = CTA_TUPLE_REPLY};
    (void)mnl_attr_parse(h, sizeof(struct nfgenmsg), on_attribute, &orig);
    (void)mnl_attr_parse(h, sizeof(struct nfgenmsg), on_attribute, &reply);
    const struct nlattr *ip = find(orig.found, CTA_TUPLE_IP, 0);
    const struct nlattr *from = find(ip, four ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, four ? 4 : 16);
    if (from == NULL)
        return MNL_CB_OK;
    struct silt_tracked t = {.family = s->family,
                             .orig = orig.found,
                             .reply = reply.found,
                             .from = mnl_attr_get_payload(from)};
    if (s->goes(s->context, &t))
        s->dropped += drop_this(s, &t);
    return MNL_CB_OK;
}

uint32_t silt_conntrack_forget(struct silt_conntrack *c, int family, silt_conntrack_goes *goes,
                               void *context)
{
    static char room[ROOM] __attribute__((aligned(8)));
    struct sweep s = {.conntrack = c, .goes = goes, .context = context, .family = family};
    struct nlmsghdr *h = begin(room, IPCTNL_MSG_CT_GET, NLM_F_DUMP, family);
    int more = send(c->list, room, h->nlmsg_len, 0) < 0 ? MNL_CB_ERROR : MNL_CB_OK;
    while (more > MNL_CB_STOP) {
        ssize_t n = recv(c->list, room, sizeof(room), 0);
        more = n <= 0 ? MNL_CB_ERROR : mnl_cb_run(room, (size_t)n, 0, 0, on_entry, &s);
    }
    return s.dropped;
}

static void put_as(struct nlmsghdr *h, uint16_t type, const struct nlattr *a)
{
    mnl_attr_put(h, type, mnl_attr_get_payload_len(a), mnl_attr_get_payload(a));
}

/* The reply direction, reversed, is what was forwarded. Only for protocols with ports: others
 * expire soon anyway. */
void silt_conntrack_forget_next(struct silt_conntrack *next, const struct silt_tracked *t)
{
    char room[ENTRY_MAX] __attribute__((aligned(8)));
    bool four = t->family == AF_INET;
    uint16_t size = four ? 4 : 16;
    uint16_t src = four ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, dst = four ? CTA_IP_V4_DST : CTA_IP_V6_DST;
    const struct nlattr *ip = find(t->reply, CTA_TUPLE_IP, 0);
    const struct nlattr *proto = find(t->reply, CTA_TUPLE_PROTO, 0);
    const struct nlattr *from = find(ip, src, size), *to = find(ip, dst, size);
    const struct nlattr *number = find(proto, CTA_PROTO_NUM, 1);
    const struct nlattr *sport = find(proto, CTA_PROTO_SRC_PORT, 2);
    const struct nlattr *dport = find(proto, CTA_PROTO_DST_PORT, 2);
    if (from == NULL || to == NULL || number == NULL || sport == NULL || dport == NULL)
        return;
    struct nlmsghdr *h = begin(room, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, t->family);
    struct nlattr *tuple = mnl_attr_nest_start(h, CTA_TUPLE_ORIG);
    struct nlattr *nest = mnl_attr_nest_start(h, CTA_TUPLE_IP);
    put_as(h, src, to);
    put_as(h, dst, from);
    mnl_attr_nest_end(h, nest);
    nest = mnl_attr_nest_start(h, CTA_TUPLE_PROTO);
    put_as(h, CTA_PROTO_NUM, number);
    put_as(h, CTA_PROTO_SRC_PORT, dport);
    put_as(h, CTA_PROTO_DST_PORT, sport);
    mnl_attr_nest_end(h, nest);
    mnl_attr_nest_end(h, tuple);
    (void)drop(next, h);
}
