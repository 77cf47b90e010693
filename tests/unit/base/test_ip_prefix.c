/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ip_prefix.h"
#include "base/own.h"
#include "unit/base/unit.h"

static silt_ip_prefix read_prefix(const char *text)
{
    silt_ip_prefix p;
    struct silt_error e;
    if (silt_ip_prefix_parse(silt_slice_of(text), &p, &e) < 0)
        fail_msg("%s %s", text, e.text);
    return p;
}

static void assert_canonical(const char *text, const char *want)
{
    char got[SILT_IP_PREFIX_TEXT];
    silt_ip_prefix p = read_prefix(text);
    silt_ip_prefix_text(&p, got);
    assert_string_equal(got, want);
}

TEST(networks_and_addresses_have_one_way_to_be_written)
{
    assert_canonical("10.1.0.0/16", "10.1.0.0/16");
    assert_canonical("10.1.2.3", "10.1.2.3");
    assert_canonical("10.1.2.3/32", "10.1.2.3");
    assert_canonical("0.0.0.0/0", "0.0.0.0/0");
    assert_canonical("2001:DB8:0:0::/32", "2001:db8::/32");
    assert_canonical("2606:4700::1111/128", "2606:4700::1111");
    assert_canonical("::/0", "::/0");
}

TEST(what_is_no_network_is_refused)
{
    static const char *const bad[] = {"",
                                      "/",
                                      "/8",
                                      "10.1.0.0/",
                                      "10.1.0.0/33",
                                      "10.1.0.0/+8",
                                      "10.1/16",
                                      "10.1.0.0/08",
                                      "010.1.0.0/16",
                                      "0x0a.1.0.0/16",
                                      "167837696",
                                      "10.1.0.0/16/",
                                      "10.1.0.1/16",
                                      "2001:db8::/129",
                                      "2001:db8::1/32",
                                      "fe80::1%eth0",
                                      ":",
                                      ":::",
                                      "1::2::3",
                                      " 10.0.0.0/8",
                                      "10.0.0.0/8 ",
                                      "10.0.0.256"};
    silt_ip_prefix p;
    struct silt_error e;
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        if (silt_ip_prefix_parse(silt_slice_of(bad[i]), &p, &e) == 0)
            fail_msg("%s was taken", bad[i]);
    assert_int_equal(silt_ip_prefix_parse(SILT_LIT("10.1.2.3\0"), &p, &e), -1);
    assert_int_equal(silt_ip_prefix_parse(SILT_LIT("10.1.2.3/16"), &p, &e), -1);
    assert_non_null(strstr(e.text, "10.1.0.0/16"));
}

static bool is_closed(const char *text, const char *open)
{
    struct silt_ip_prefix_list list;
    struct silt_error e;
    silt_ip_prefix p = read_prefix(text);
    assert_int_equal(silt_ip_prefix_list_parse(silt_slice_of(open), &list, &e), 0);
    return silt_ip_prefix_is_closed(&p, &list);
}

TEST(what_is_not_the_internet_is_closed)
{
    static const char *const closed[] = {"10.0.0.0/8",      "10.1.2.3",        "127.0.0.1",
                                         "169.254.169.254", "192.168.0.0/16",  "168.63.129.16",
                                         "224.0.0.0/3",     "255.255.255.255", "::1",
                                         "fd00:ec2::254",   "fe80::/10",       "::ffff:8.8.8.8",
                                         "64:ff9b::/96",    "2002::/16",       "2001:db8::/32",
                                         "8000::/1",        "4000::/2"};
    static const char *const open[] = {"8.8.8.8", "0.0.0.0/0", "8.0.0.0/6",      "2606:4700::/32",
                                       "::/0",    "2000::/3",  "168.63.129.0/24"};
    for (size_t i = 0; i < SILT_COUNT(closed); i++)
        if (!is_closed(closed[i], ""))
            fail_msg("%s is open", closed[i]);
    for (size_t i = 0; i < SILT_COUNT(open); i++)
        if (is_closed(open[i], ""))
            fail_msg("%s is closed", open[i]);
}

static bool is_private(const char *text, const char *open)
{
    struct silt_ip_prefix_list list;
    struct silt_error e;
    silt_ip_prefix p = read_prefix(text);
    assert_int_equal(silt_ip_prefix_list_parse(silt_slice_of(open), &list, &e), 0);
    return silt_ip_prefix_is_private(&p, &list);
}

TEST(host_private_link_local_and_metadata_addresses_are_private_in_every_spelling)
{
    static const char *const inside[] = {"127.0.0.1",
                                         "10.1.2.3",
                                         "172.31.0.1",
                                         "192.168.0.1",
                                         "169.254.169.254",
                                         "168.63.129.16",
                                         "100.100.100.200",
                                         "0.0.0.0",
                                         "::",
                                         "::1",
                                         "fd00:ec2::254",
                                         "fe80::1",
                                         "fec0::1",
                                         "ff02::1",
                                         "198.18.1.0",
                                         "::7f00:1",
                                         "::ffff:10.0.0.1",
                                         "::ffff:0:169.254.169.254",
                                         "64:ff9b::7f00:1",
                                         "64:ff9b::a9fe:a9fe",
                                         "64:ff9b:1::808:808",
                                         "2002:a00:1::1",
                                         "2002:a9fe:a9fe::",
                                         "255.255.255.255"};
    static const char *const outside[] = {"8.8.8.8",         "11.0.0.1",       "192.0.2.1",
                                          "111::",           "4000::1",        "2606:4700::1111",
                                          "2001:db8::1",     "::ffff:8.8.8.8", "64:ff9b::808:808",
                                          "2002:808:808::1", "::808:808"};
    for (size_t i = 0; i < SILT_COUNT(inside); i++)
        if (!is_private(inside[i], ""))
            fail_msg("%s is not private", inside[i]);
    for (size_t i = 0; i < SILT_COUNT(outside); i++)
        if (is_private(outside[i], ""))
            fail_msg("%s is private", outside[i]);
    assert_false(is_private("10.1.2.3", "10.1.0.0/16"));
    assert_false(is_private("64:ff9b::a01:203", "10.1.0.0/16"));
    assert_true(is_private("10.2.0.1", "10.1.0.0/16"));
}

TEST(what_was_opened_is_open_and_nothing_beside_it)
{
    assert_false(is_closed("10.1.2.0/24", "192.168.7.0/24, 10.1.0.0/16"));
    assert_false(is_closed("10.1.0.0/16", "10.1.0.0/16"));
    assert_true(is_closed("10.0.0.0/15", "10.1.0.0/16"));
    assert_true(is_closed("10.2.0.0/16", "10.1.0.0/16"));
    assert_false(is_closed("fd00:1::5", "fd00:1::/64"));
    assert_true(is_closed("fd00:2::5", "fd00:1::/64"));
}
