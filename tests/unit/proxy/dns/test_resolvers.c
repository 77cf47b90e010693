/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns/resolvers.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <netinet/in.h>

TEST(name_servers_are_read_and_the_rest_is_not)
{
    struct silt_resolvers r = {0};
    silt_resolvers_parse(&r, SILT_LIT("# nameserver 1.1.1.1\n"
                                      "search example.test\n"
                                      "nameserver 192.0.2.1\n"
                                      "nameserver\t2001:db8::1  # ours\n"
                                      "nameservers 192.0.2.9\n"
                                      "nameserver\n"
                                      "nameserver fe80::1%eth0\n"
                                      "nameserver not-an-address\n"
                                      "options ndots:5"));
    assert_int_equal(r.count, 2);
    const struct sockaddr_in *four = (const void *)&r.list[0].address;
    assert_int_equal(four->sin_family, AF_INET);
    assert_int_equal(ntohl(four->sin_addr.s_addr), 0xc0000201);
    assert_int_equal(ntohs(four->sin_port), 53);
    assert_int_equal(r.list[1].address.ss_family, AF_INET6);
}

TEST(three_are_enough)
{
    struct silt_resolvers r = {0};
    silt_resolvers_parse(&r, SILT_LIT("nameserver 192.0.2.1\nnameserver 192.0.2.2\n"
                                      "nameserver 192.0.2.3\nnameserver 192.0.2.4\n"));
    assert_int_equal(r.count, SILT_RESOLVERS_MAX);
}

TEST(an_empty_setting_is_no_mistake)
{
    struct silt_resolvers r;
    struct silt_error e;
    assert_int_equal(silt_resolvers_init(&r, "", &e), 0);
    assert_false(r.fixed);
}

TEST(the_setting_goes_before_the_file)
{
    struct silt_resolvers r;
    struct silt_error e;
    assert_int_equal(silt_resolvers_init(&r, "192.0.2.7, ::1", &e), 0);
    assert_int_equal(r.count, 2);
    assert_int_equal(silt_resolvers_init(&r, "192.0.2.7,example.test", &e), -1);
    assert_int_equal(e.code, SILT_INVALID);
}
