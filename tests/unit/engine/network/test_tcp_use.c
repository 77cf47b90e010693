/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/tcp_use.h"
#include "unit/base/unit.h"

#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>

static int pages_of(const char *text, uint64_t *ret)
{
    struct silt_error e;
    return silt_tcp_use_machine(silt_slice_of(text), ret, &e);
}

TEST(sockstat_tells_the_pages_of_tcp)
{
    uint64_t pages = 0;
    assert_int_equal(pages_of("sockets: used 16\n"
                              "TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 4711\n"
                              "UDP: inuse 0 mem 5\n",
                              &pages),
                     0);
    assert_int_equal(pages, 4711);
    assert_int_equal(pages_of("TCP: mem 0", &pages), 0);
    assert_int_equal(pages, 0);
}

TEST(sockstat_without_a_number_is_an_error)
{
    uint64_t pages;
    static const char *const bad[] = {"",
                                      "TCP:",
                                      "TCP: ",
                                      "TCP: inuse 1 mem",
                                      "TCP: mem ",
                                      "TCP: mem x",
                                      "TCP: mem -1",
                                      "UDP: inuse 0 mem 5",
                                      "XTCP: mem 3",
                                      "TCP: mem 99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(pages_of(bad[i], &pages), -1);
}

struct answer {
    struct nlmsghdr head;
    struct inet_diag_msg body;
    struct nlattr attribute;
    uint32_t memory[SK_MEMINFO_VARS];
};

static struct answer listener(void)
{
    struct answer a = {
        .head = {.nlmsg_len = sizeof(a), .nlmsg_type = SOCK_DIAG_BY_FAMILY},
        .body = {.idiag_family = AF_INET,
                 .idiag_state = TCP_LISTEN,
                 .idiag_rqueue = 7,
                 .idiag_uid = 65536,
                 .idiag_inode = 3},
        .attribute = {.nla_len = sizeof(a.attribute) + sizeof(a.memory),
                      .nla_type = INET_DIAG_SKMEMINFO},
        .memory = {[SK_MEMINFO_RMEM_ALLOC] = 1000,
                   [SK_MEMINFO_RCVBUF] = 4096,
                   [SK_MEMINFO_WMEM_QUEUED] = 200,
                   [SK_MEMINFO_FWD_ALLOC] = 30},
    };
    a.body.id.idiag_sport = htons(8080);
    return a;
}

TEST(diag_reads_a_socket)
{
    struct answer a = listener();
    struct silt_sock_list_socket s;
    assert_true(silt_sock_list_read(&a.head, IPPROTO_TCP, &s));
    assert_int_equal(s.family, AF_INET);
    assert_int_equal(s.state, TCP_LISTEN);
    assert_int_equal(s.port, 8080);
    assert_int_equal(s.uid, 65536);
    assert_int_equal(s.backlog, 7);
    assert_true(s.held);
    assert_int_equal(s.memory, 1230);
    assert_int_equal(s.receive_max, 4096);
}

TEST(diag_takes_memory_that_is_owed_for_none)
{
    struct answer a = listener();
    struct silt_sock_list_socket s;
    a.memory[SK_MEMINFO_FWD_ALLOC] = (uint32_t)-4096;
    assert_true(silt_sock_list_read(&a.head, IPPROTO_TCP, &s));
    assert_int_equal(s.memory, 1200);
}

TEST(diag_counts_a_backlog_of_listeners_only)
{
    struct answer a = listener();
    struct silt_sock_list_socket s;
    a.body.idiag_state = TCP_ESTABLISHED; /* there it is a number of bytes */
    a.body.idiag_inode = 0;
    assert_true(silt_sock_list_read(&a.head, IPPROTO_TCP, &s));
    assert_int_equal(s.backlog, 0);
    assert_false(s.held);
}

TEST(diag_refuses_what_is_too_short)
{
    struct answer a = listener();
    struct silt_sock_list_socket s;
    for (uint32_t len = sizeof(a.head); len < sizeof(a.head) + sizeof(a.body); len++) {
        a.head.nlmsg_len = len;
        assert_false(silt_sock_list_read(&a.head, IPPROTO_TCP, &s));
    }
    for (uint32_t len = sizeof(a.head) + sizeof(a.body); len < sizeof(a); len += NLMSG_ALIGNTO) {
        a.head.nlmsg_len = len; /* the attribute would go on behind the end */
        assert_true(silt_sock_list_read(&a.head, IPPROTO_TCP, &s));
        assert_int_equal(s.memory, 0);
    }
    a = listener();
    a.attribute.nla_len = sizeof(a.attribute) + SK_MEMINFO_OPTMEM * sizeof(uint32_t) - 1;
    assert_true(silt_sock_list_read(&a.head, IPPROTO_TCP, &s));
    assert_int_equal(s.memory, 0);
    a = listener();
    a.head.nlmsg_type = NLMSG_DONE;
    assert_false(silt_sock_list_read(&a.head, IPPROTO_TCP, &s));
}
