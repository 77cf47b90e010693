/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/unit.h"
#include "proxy/preview/trusted_proxy.h"

#include <arpa/inet.h>

static struct silt_http_head head;

static void take(const char *fields)
{
    char text[2048];
    int n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    static char kept[2048];
    memcpy(kept, text, (size_t)n);
    assert_int_equal(silt_http_parse(&head, (silt_slice){kept, (size_t)n}, SILT_HTTP_REQUEST), n);
}

static struct silt_ip_prefix_list list(const char *text)
{
    struct silt_ip_prefix_list l;
    struct silt_error e;
    assert_int_equal(silt_ip_prefix_list_parse(silt_slice_of(text), &l, &e), 0);
    return l;
}

static struct sockaddr_in6 wide(const char *text)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6};
    assert_int_equal(inet_pton(AF_INET6, text, &a.sin6_addr), 1);
    return a;
}

/* Who it is that came from `from` with these fields. */
static const char *visitor(const struct silt_ip_prefix_list *fronts, const char *fields)
{
    static char text[INET6_ADDRSTRLEN];
    struct sockaddr_in6 who = wide("::ffff:10.0.0.1");
    take(fields);
    silt_trusted_proxy_visitor(fronts, &head, &who);
    (void)inet_ntop(AF_INET6, &who.sin6_addr, text, sizeof(text));
    return text;
}

TEST(a_front_is_known_by_its_address_in_every_form)
{
    struct silt_ip_prefix_list fronts = list("127.0.0.1, 10.0.0.0/8, fd00::/8"), none = list("");
    struct sockaddr_in narrow = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 a = {0};
    memcpy(&a, &narrow, sizeof(narrow));
    assert_true(silt_trusted_proxy_is(&fronts, &a));
    assert_false(silt_trusted_proxy_is(&none, &a));
    a = wide("::ffff:10.9.9.9");
    assert_true(silt_trusted_proxy_is(&fronts, &a));
    a = wide("fd12::1");
    assert_true(silt_trusted_proxy_is(&fronts, &a));
    a = wide("::1");
    assert_false(silt_trusted_proxy_is(&fronts, &a));
    a = wide("::ffff:127.0.0.2");
    assert_false(silt_trusted_proxy_is(&fronts, &a));
}

TEST(the_visitor_is_the_last_one_who_is_no_front)
{
    struct silt_ip_prefix_list fronts = list("10.0.0.0/8");
    assert_string_equal(visitor(&fronts, "X-Forwarded-For: 203.0.113.9\r\n"), "::ffff:203.0.113.9");
    assert_string_equal(visitor(&fronts, "X-Forwarded-For: 6.6.6.6, 203.0.113.9, 10.0.0.7\r\n"),
                        "::ffff:203.0.113.9");
    assert_string_equal(
        visitor(&fronts, "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 203.0.113.9\r\n"),
        "::ffff:203.0.113.9");
    assert_string_equal(visitor(&fronts, "X-Forwarded-For: 2001:db8::5\r\n"), "2001:db8::5");
    assert_string_equal(visitor(&fronts, "X-Forwarded-For: 10.0.0.7, 10.0.0.8\r\n"),
                        "::ffff:10.0.0.7");
}

TEST(what_is_no_address_is_nobody_and_hides_who_stands_before_it)
{
    struct silt_ip_prefix_list fronts = list("10.0.0.0/8");
    const char *bad[] = {"",
                         "X-Forwarded-For: \r\n",
                         "X-Forwarded-For: unknown\r\n",
                         "X-Forwarded-For: 1.2.3.4/8\r\n",
                         "X-Forwarded-For: 1.2.3.4,\r\n",
                         "X-Forwarded-For: 1.2.3.4, evil\r\n",
                         "X-Forwarded-For: 1.2.3.4:80\r\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_string_equal(visitor(&fronts, bad[i]), "::ffff:10.0.0.1");
    char many[1024] = "X-Forwarded-For: 1.2.3.4", *end = many + strlen(many);
    for (int i = 0; i < SILT_TRUSTED_PROXY_STEPS_MAX; i++)
        end += snprintf(end, sizeof(many) - (size_t)(end - many), ", 10.0.0.%d", i + 10);
    (void)snprintf(end, sizeof(many) - (size_t)(end - many), "\r\n");
    assert_string_equal(visitor(&fronts, many), "::ffff:10.0.0.10");
}

TEST(a_front_says_last_how_the_visitor_came)
{
    take("X-Forwarded-Proto: https\r\n");
    assert_true(silt_trusted_proxy_is_tls(&head, false));
    take("X-Forwarded-Proto: https, http\r\n");
    assert_false(silt_trusted_proxy_is_tls(&head, true));
    take("X-Forwarded-Proto: http\r\nX-Forwarded-Proto: HTTPS\r\n");
    assert_true(silt_trusted_proxy_is_tls(&head, false));
    take("X-Forwarded-Proto: gopher\r\n");
    assert_true(silt_trusted_proxy_is_tls(&head, true));
    assert_false(silt_trusted_proxy_is_tls(&head, false));
    take("");
    assert_true(silt_trusted_proxy_is_tls(&head, true));
}
