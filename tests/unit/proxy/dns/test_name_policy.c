/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns/name_policy.h"
#include "unit/base/unit.h"

enum { IN = 1, CHAOS = 3, PTR = 12, TXT = 16, AXFR = 252 };

static int asks(const char *name, uint16_t type, uint16_t class, const char *open)
{
    struct silt_link_table links;
    struct silt_error e;
    struct silt_dns_question q = {.type = type, .class = class};
    char message[512] = {0};
    size_t len = sizeof(message);
    assert_int_equal(silt_link_table_init(&links, "10.201.0.0/16", "fd7a::/64", open, &e), 0);
    struct silt_name_policy_asker a = {.links = &links, .link = SILT_PLAN_LINK_FIRST};
    (void)snprintf(q.name, sizeof(q.name), "%s", name);
    int code = silt_name_policy_ask(&a, &q, message, &len);
    silt_link_table_fini(&links);
    return code;
}

TEST(a_resolver_is_asked_nothing_about_itself_and_for_no_zone)
{
    assert_int_equal(asks("servers.bind", TXT, CHAOS, ""), SILT_DNS_REFUSED);
    assert_int_equal(asks("hostname.bind", TXT, 255, ""), SILT_DNS_REFUSED);
    assert_int_equal(asks("corp.test", AXFR, IN, ""), SILT_DNS_REFUSED);
    assert_int_equal(asks("corp.test", TXT, IN, ""), SILT_NAME_POLICY_ASK);
}

/* As a captive sandbox that asks without end. */
static int asks_patterns(struct silt_link_table *links, uint32_t number, const char *name)
{
    struct silt_dns_question q = {.type = 1, .class = IN};
    char message[SILT_NAME_POLICY_ROOM] = {0};
    size_t len = 64;
    struct silt_name_policy_asker a = {.links = links, .link = number, .captive = true};
    (void)snprintf(q.name, sizeof(q.name), "%s", name);
    return silt_name_policy_ask(&a, &q, message, &len);
}

TEST(whoever_asks_and_asks_gets_no_more_than_a_share)
{
    static char globs[60 << 10];
    struct silt_link_table links;
    struct silt_error e;
    char name[200];
    assert_int_equal(silt_link_table_init(&links, "10.201.0.0/16", "fd7a::/64", "", &e), 0);
    struct silt_intercept_names own = {.globs = globs, .globs_len = sizeof(globs)}, other = own;
    for (size_t i = 0; i < sizeof(globs); i++)
        globs[i] = "*ab\n"[i % 64 == 0 ? 0 : i % 64 < 62 ? 1 : i % 64 - 60]; /* *aaaa…b */
    memcpy(globs + sizeof(globs) - 6, "\n*.ok\n", 6);
    memset(name, 'a', sizeof(name));
    memcpy(name + sizeof(name) - 4, ".ok", 4);
    uint32_t number = SILT_EGRESS_CAPTIVE | SILT_PLAN_LINK_FIRST;
    silt_link_table_at(&links, number)->names = &own;
    silt_link_table_at(&links, number + 1)->names = &other;
    assert_int_equal(asks_patterns(&links, number, name), SILT_NAME_POLICY_ANSWERED);
    int n = 0;
    while (n < 1000 && asks_patterns(&links, number, name) == SILT_NAME_POLICY_ANSWERED)
        n++;
    assert_in_range(n, 1, 999);
    assert_int_equal(asks_patterns(&links, number + 1, name), SILT_NAME_POLICY_ANSWERED);
    silt_link_table_at(&links, number)->names = silt_link_table_at(&links, number + 1)->names =
        NULL;
    silt_link_table_fini(&links);
}

TEST(the_last_places_are_for_those_who_have_few)
{
    struct silt_places p = {.most = 100, .each = 10, .few = 2};
    assert_true(silt_places_left(&p, 74, 9));
    assert_false(silt_places_left(&p, 74, 10));
    assert_false(silt_places_left(&p, 75, 2));
    assert_true(silt_places_left(&p, 99, 1));
    assert_false(silt_places_left(&p, 100, 0));
    p.each = 0;
    assert_true(silt_places_left(&p, 74, 74));
}

TEST(closed_addresses_have_no_names)
{
    static const char *const closed[] = {
        "1.1.168.192.in-addr.arpa",
        "1.1.0.127.in-addr.arpa",
        "10.in-addr.arpa",
        "lb._dns-sd._udp.0.0.168.192.in-addr.arpa",
        "16.129.63.168.in-addr.arpa",
        "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
        "d.f.ip6.arpa",
        "4.5.2.0.0.0.2.c.e.0.0.0.0.0.d.f.ip6.arpa",
    };
    static const char *const others[] = {
        "8.8.8.8.in-addr.arpa",
        "172.in-addr.arpa",
        "in-addr.arpa",
        "arpa",
        "",
        "1.168.192.test",
        "8.8.8.8.0.6.8.4.1.0.0.2.ip6.arpa.test",
        "0.6.8.4.1.0.0.2.0.0.6.2.ip6.arpa",
    };
    for (size_t i = 0; i < SILT_COUNT(closed); i++)
        if (asks(closed[i], PTR, IN, "") != SILT_DNS_NXDOMAIN)
            fail_msg("%s was asked for", closed[i]);
    for (size_t i = 0; i < SILT_COUNT(others); i++)
        if (asks(others[i], PTR, IN, "") != SILT_NAME_POLICY_ASK)
            fail_msg("%s was not asked for", others[i]);
    assert_int_equal(asks("1.1.168.192.in-addr.arpa", PTR, IN, "192.168.1.0/24"),
                     SILT_NAME_POLICY_ASK);
}
