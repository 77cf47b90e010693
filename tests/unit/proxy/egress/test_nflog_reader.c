/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/nflog_reader.h"
#include "unit/base/unit.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

enum { LINK = 258 };

struct message {
    char bytes[512];
    size_t len;
};

static void add_attribute(struct message *m, uint16_t type, const void *data, size_t len)
{
    struct nlattr a = {.nla_len = (uint16_t)(sizeof(a) + len), .nla_type = type};
    memcpy(m->bytes + m->len, &a, sizeof(a));
    memcpy(m->bytes + m->len + sizeof(a), data, len);
    m->len += (sizeof(a) + len + 3) & ~(size_t)3;
}

static struct message make(uint16_t group, const char *prefix, silt_slice packet)
{
    struct message m = {.len = sizeof(struct nlmsghdr)};
    struct nfgenmsg g = {.res_id = htons(group)};
    uint32_t index = htonl(SILT_PLAN_INDEX_BASE + LINK);
    memcpy(m.bytes + m.len, &g, sizeof(g));
    m.len += sizeof(g);
    add_attribute(&m, NFULA_PREFIX, prefix, strlen(prefix) + 1);
    add_attribute(&m, NFULA_IFINDEX_INDEV, &index, sizeof(index));
    add_attribute(&m, NFULA_PAYLOAD, packet.data, packet.len);
    struct nlmsghdr h = {.nlmsg_len = (uint32_t)m.len,
                         .nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET};
    memcpy(m.bytes, &h, sizeof(h));
    return m;
}

#define IP4 "\x45\0\0\x28\0\0\0\0\x40\x06\0\0\x0a\xd2\x01\x02\xa9\xfe\xa9\xfe"
#define PORTS "\x80\0\x01\xbb"

TEST(a_refusal_is_read)
{
    struct message m = make(1, "closed", SILT_LIT(IP4 PORTS));
    silt_slice rest = {m.bytes, m.len};
    struct silt_nflog_reader_event v;
    assert_true(silt_nflog_reader_parse(&rest, &v));
    assert_int_equal(v.what, SILT_NFLOG_READER_REFUSED);
    assert_int_equal(v.link, LINK);
    assert_int_equal(v.refusal.reason, SILT_REFUSED_CLOSED);
    assert_int_equal(v.refusal.protocol, SILT_EGRESS_TCP);
    assert_int_equal(v.refusal.port, 443);
    assert_int_equal(v.refusal.family, 4);
    assert_memory_equal(v.refusal.address, "\xa9\xfe\xa9\xfe", 4);
    assert_false(silt_nflog_reader_parse(&rest, &v));
}

TEST(ipv6_and_pings_are_read)
{
    struct message m = make(1, "mode",
                            SILT_LIT("\x60\0\0\0\0\x08\x3a\x40"
                                     "0123456789abcdef"
                                     "ABCDEFGHIJKLMNOP"
                                     "\x80\0\0\0"));
    silt_slice rest = {m.bytes, m.len};
    struct silt_nflog_reader_event v;
    assert_true(silt_nflog_reader_parse(&rest, &v));
    assert_int_equal(v.refusal.reason, SILT_REFUSED_MODE);
    assert_int_equal(v.refusal.protocol, SILT_EGRESS_ICMP);
    assert_int_equal(v.refusal.port, 0);
    assert_memory_equal(v.refusal.address, "ABCDEFGHIJKLMNOP", 16);
}

TEST(beginnings_are_counted)
{
    struct message m = make(2, "", SILT_LIT("\x45"));
    silt_slice rest = {m.bytes, m.len};
    struct silt_nflog_reader_event v;
    assert_true(silt_nflog_reader_parse(&rest, &v));
    assert_int_equal(v.what, SILT_NFLOG_READER_BEGUN);
    assert_int_equal(v.link, LINK);
}

TEST(packets_that_are_cut_off_are_nothing)
{
    silt_slice whole = SILT_LIT(IP4 PORTS);
    for (size_t len = 0; len < whole.len - sizeof(PORTS) + 1; len++) {
        struct message m = make(1, "closed", (silt_slice){whole.data, len});
        silt_slice rest = {m.bytes, m.len};
        struct silt_nflog_reader_event v;
        assert_true(silt_nflog_reader_parse(&rest, &v));
        assert_int_equal(v.what, SILT_NFLOG_READER_NOTHING);
    }
}
