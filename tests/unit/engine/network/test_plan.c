/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/plan.h"
#include "base/own.h"
#include "engine/network/rules.h"
#include "unit/base/unit.h"

#include <arpa/inet.h>

static const char *text_of(silt_ip ip)
{
    static char text[INET6_ADDRSTRLEN];
    return inet_ntop(ip.family, ip.bytes, text, sizeof(text));
}

TEST(addresses_follow_from_the_number)
{
    struct silt_plan p;
    struct silt_error e;
    assert_int_equal(silt_plan_make("10.210.0.0/16", "fd73:696c:7400::/64", 96, &p, &e), 0);
    assert_int_equal(p.links, 65535);
    assert_string_equal(text_of(silt_plan_ip(&p, AF_INET, 1)), "10.210.0.1");
    assert_string_equal(text_of(silt_plan_ip(&p, AF_INET, 258)), "10.210.1.2");
    assert_string_equal(text_of(silt_plan_ip(&p, AF_INET, p.links - 1)), "10.210.255.254");
    assert_string_equal(text_of(silt_plan_ip(&p, AF_INET6, 258)), "fd73:696c:7400::102");
    assert_string_equal(text_of(silt_plan_uplink(&p, AF_INET, true)), "198.18.96.0");
    assert_string_equal(text_of(silt_plan_uplink(&p, AF_INET, false)), "198.18.96.1");
    assert_string_equal(text_of(silt_plan_uplink(&p, AF_INET6, true)), "fd73:696c:7401:60::1");
}

TEST(networks_that_are_none_are_refused)
{
    static const char *const bad[][2] = {
        {"10.210.0.0", "fd73::/64"},    {"10.210.0.1/16", "fd73::/64"},
        {"10.0.0.0/7", "fd73::/64"},    {"10.0.0.0/25", "fd73::/64"},
        {"x/16", "fd73::/64"},          {"10.210.0.0/16", "fd73::1/64"},
        {"10.210.0.0/16", "fd73::/97"}, {"10.210.0.0/16", ""},
        {"fd73::/16", "fd73::/64"},     {"10.210.0.0/ 16", "fd73::/64"}};
    struct silt_plan p;
    struct silt_error e;
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        if (silt_plan_make(bad[i][0], bad[i][1], 0, &p, &e) == 0)
            fail_msg("%s %s was taken", bad[i][0], bad[i][1]);
}

TEST(only_networks_can_be_opened)
{
    struct silt_error e;
    assert_int_equal(silt_rules_check_open("", &e), 0);
    assert_int_equal(silt_rules_check_open("10.1.0.0/16, fd00:1::/64,192.168.7.7/32", &e), 0);
    assert_int_equal(silt_rules_check_open("10.1.0.0/16; flush ruleset", &e), -1);
    assert_int_equal(silt_rules_check_open("10.1.0.1/16", &e), -1);
    assert_int_equal(silt_rules_check_open("example.test", &e), -1);
}
