/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/nflog_reader.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>

enum {
    REFUSED = 1, /* groups: engine/network/rules.c */
    BEGUN = 2,
    ROOM = 65536,
    BATCH = 32,
    IP4_HEAD = 20,
    IP6_HEAD = 40,
};

struct packet {
    uint16_t group;
    uint32_t index;
    silt_slice prefix, payload;
};

static size_t align(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

static silt_slice cut(silt_slice *s, size_t n)
{
    silt_slice head = {s->data, n < s->len ? n : s->len};
    s->data += head.len;
    s->len -= head.len;
    return head;
}

static void read_attribute(uint16_t type, silt_slice value, struct packet *p)
{
    uint32_t number;
    if (type == NFULA_PREFIX)
        p->prefix = value;
    else if (type == NFULA_PAYLOAD)
        p->payload = value;
    else if (type == NFULA_IFINDEX_INDEV && value.len == sizeof(number)) {
        memcpy(&number, value.data, sizeof(number));
        p->index = ntohl(number);
    }
}

static bool read_packet(silt_slice body, struct packet *p)
{
    struct nfgenmsg g;
    *p = (struct packet){0};
    if (body.len < sizeof(g))
        return false;
    memcpy(&g, body.data, sizeof(g));
    p->group = ntohs(g.res_id);
    (void)cut(&body, align(sizeof(g)));
    while (body.len >= sizeof(struct nlattr)) {
        struct nlattr a;
        memcpy(&a, body.data, sizeof(a));
        if (a.nla_len < sizeof(a) || a.nla_len > body.len)
            return false;
        silt_slice value = {body.data + sizeof(a), a.nla_len - sizeof(a)};
        read_attribute(a.nla_type & 0x3fff, value, p); /* without the flags */
        (void)cut(&body, align(a.nla_len));
    }
    return true;
}

static uint8_t reason_of(silt_slice prefix)
{
    static const struct {
        const char *word;
        uint8_t reason;
    } known[] = {{"mode", SILT_REFUSED_MODE},
                 {"closed", SILT_REFUSED_CLOSED},
                 {"limit", SILT_REFUSED_LIMIT}};
    if (prefix.len > 0 && prefix.data[prefix.len - 1] == 0)
        prefix.len--;
    for (size_t i = 0; i < SILT_COUNT(known); i++)
        if (silt_slice_eq(prefix, silt_slice_of(known[i].word)))
            return known[i].reason;
    return SILT_REFUSED_MODE;
}

static void read_transport(uint8_t protocol, silt_slice s, struct silt_egress_refusal *r)
{
    r->protocol = protocol == IPPROTO_TCP   ? SILT_EGRESS_TCP
                  : protocol == IPPROTO_UDP ? SILT_EGRESS_UDP
                                            : SILT_EGRESS_ICMP;
    if (r->protocol != SILT_EGRESS_ICMP && s.len >= 4)
        r->port = (uint16_t)((uint8_t)s.data[2] << 8 | (uint8_t)s.data[3]);
}

/* The rules let no other protocols and no extension headers come so far. */
static bool read_ip(silt_slice s, struct silt_egress_refusal *r)
{
    unsigned version = s.len > 0 ? (uint8_t)s.data[0] >> 4 : 0;
    size_t head = version == 4 ? ((uint8_t)s.data[0] & 15U) * 4U : IP6_HEAD;
    if ((version != 4 && version != 6) || s.len < head || (version == 4 && head < IP4_HEAD))
        return false;
    r->family = (uint8_t)version;
    memcpy(r->address, s.data + (version == 4 ? 16 : 24), version == 4 ? 4 : 16);
    uint8_t protocol = (uint8_t)s.data[version == 4 ? 9 : 6];
    (void)cut(&s, head);
    read_transport(protocol, s, r);
    return true;
}

static void read_event(silt_slice body, struct silt_nflog_reader_event *ret)
{
    struct packet p;
    if (!read_packet(body, &p) || p.index <= SILT_PLAN_INDEX_BASE)
        return;
    ret->link = p.index - SILT_PLAN_INDEX_BASE;
    if (p.group == BEGUN)
        ret->what = SILT_NFLOG_READER_BEGUN;
    ret->refusal.reason = reason_of(p.prefix);
    if (p.group == REFUSED && read_ip(p.payload, &ret->refusal))
        ret->what = SILT_NFLOG_READER_REFUSED;
}

bool silt_nflog_reader_parse(silt_slice *bytes, struct silt_nflog_reader_event *ret)
{
    struct nlmsghdr h;
    *ret = (struct silt_nflog_reader_event){0};
    if (bytes->len < sizeof(h))
        return false;
    memcpy(&h, bytes->data, sizeof(h));
    if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > bytes->len)
        return false;
    silt_slice body = {bytes->data + sizeof(h), h.nlmsg_len - sizeof(h)};
    if (h.nlmsg_type == (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET))
        read_event(body, ret);
    (void)cut(bytes, align(h.nlmsg_len));
    return true;
}

/* Where a diverted packet wanted to go is no longer in it: it says the gateway. */
static void hide_gateway(const struct silt_link_table *l, struct silt_egress_refusal *r)
{
    int family = r->family == 4 ? AF_INET : AF_INET6;
    silt_ip gateway = silt_plan_ip(&l->plan, family, 1);
    if (r->reason != SILT_REFUSED_LIMIT
        || memcmp(gateway.bytes, r->address, sizeof(r->address)) != 0)
        return;
    r->family = 0;
    r->port = 0;
    memset(r->address, 0, sizeof(r->address));
}

static void on_event(struct silt_nflog_reader *t, struct silt_nflog_reader_event *v)
{
    struct silt_egress_link *link =
        v->what != SILT_NFLOG_READER_NOTHING ? silt_link_table_at(t->links, v->link) : NULL;
    if (link == NULL)
        return;
    if (v->what == SILT_NFLOG_READER_BEGUN) {
        link->counts.connections++;
        return;
    }
    hide_gateway(t->links, &v->refusal);
    silt_link_table_refuse(t->links, link, &v->refusal);
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    static char room[ROOM];
    struct silt_nflog_reader *t = silt_outer(w, struct silt_nflog_reader, watch);
    struct silt_nflog_reader_event v;
    (void)events;
    for (int i = 0; i < BATCH; i++) {
        ssize_t n = recv(w->fd, room, sizeof(room), MSG_DONTWAIT);
        if (n < 0 && errno == ENOBUFS)
            continue; /* some were lost */
        if (n <= 0)
            return;
        silt_slice rest = {room, (size_t)n};
        while (silt_nflog_reader_parse(&rest, &v))
            on_event(t, &v);
    }
}

void silt_nflog_reader_open(struct silt_nflog_reader *t, int fd)
{
    t->watch = (struct silt_watch){.fd = fd, .on_ready = on_ready};
    silt_loop_watch(t->loop, &t->watch, EPOLLIN);
}
