/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/http_connect.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static struct silt_http_connect_hints hints;

static bool look(const char *text, uint16_t port)
{
    return silt_http_connect_look(silt_slice_of(text), port, &hints);
}

TEST(a_request_to_port_80_is_known_by_its_host)
{
    assert_false(look("GET / HTTP/1.1\r\nHost: exa", 80));
    assert_true(look("GET / HTTP/1.1\r\nHost: Example.com.:80\r\n\r\n", 80));
    assert_string_equal(hints.host, "example.com");
    assert_string_equal(hints.sni, "");
    assert_true(look("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", 8080));
    assert_string_equal(hints.host, "");
}

TEST(what_is_no_request_has_no_host)
{
    static const char *const odd[] = {"EHLO me\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: a\tb\r\n\r\n",
                                      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n"};
    for (size_t i = 0; i < SILT_COUNT(odd); i++) {
        assert_true(look(odd[i], 80));
        assert_string_equal(hints.host, "");
    }
}

TEST(a_hello_is_waited_for_and_no_longer_than_it_can_be_one)
{
    static char long_one[SILT_HTTP_CONNECT_PEEK_MAX];
    assert_false(look("\x16", 443));
    assert_false(look("\x16\x03\x01", 443));
    assert_true(look("\x16\x02", 443));
    assert_true(look("SSH-2.0-x\r\n", 22));
    memset(long_one, 'a', sizeof(long_one));
    memcpy(long_one, "GET /", 5);
    assert_true(silt_http_connect_look((silt_slice){long_one, sizeof(long_one)}, 80, &hints));
}

static void written(const char *to, int family, const char *wanted)
{
    struct sockaddr_storage at = {.ss_family = (sa_family_t)family}, from = {.ss_family = AF_INET};
    struct sockaddr_in *four = (void *)&at, *source = (void *)&from;
    struct sockaddr_in6 *six = (void *)&at;
    silt_auto_buf out;
    silt_buf_init(&out, 4096);
    assert_int_equal(
        inet_pton(family, to, family == AF_INET ? (void *)&four->sin_addr : &six->sin6_addr), 1);
    four->sin_port = htons(443); /* at the same place in both */
    source->sin_addr.s_addr = htonl(0xac1f0002);
    source->sin_port = htons(4242);
    silt_http_connect_write(&out, &at, &from, &hints);
    assert_int_equal(out.len, strlen(wanted));
    assert_memory_equal(out.data, wanted, out.len);
}

TEST(a_connect_says_what_is_known)
{
    hints = (struct silt_http_connect_hints){.sni = "example.com"};
    written("11.0.0.1", AF_INET,
            "CONNECT 11.0.0.1:443 HTTP/1.1\r\nHost: 11.0.0.1:443\r\nX-Forwarded-For: "
            "172.31.0.2:4242\r\n"
            "X-Proto: tcp\r\nX-Tls-Sni: example.com\r\nConnection: close\r\n\r\n");
    hints = (struct silt_http_connect_hints){.host = "example.org"};
    written("fd00::1", AF_INET6,
            "CONNECT [fd00::1]:443 HTTP/1.1\r\nHost: [fd00::1]:443\r\nX-Forwarded-For: "
            "172.31.0.2:4242\r\n"
            "X-Proto: tcp\r\nX-Hostname: example.org\r\nConnection: close\r\n\r\n");
}

TEST(an_answer_is_read_strictly)
{
    int status = 0;
    assert_int_equal(silt_http_connect_read(SILT_LIT("HTTP/1.1 200 OK\r\n\r\nbytes"), &status), 19);
    assert_int_equal(status, 200);
    assert_int_equal(
        silt_http_connect_read(SILT_LIT("HTTP/1.1 202 Accepted\r\nX-A: b\r\n\r\n"), &status), 33);
    assert_int_equal(status, 202);
    assert_int_equal(silt_http_connect_read(SILT_LIT("HTTP/1.1 200 OK\r\n"), &status), 0);
    assert_true(silt_http_connect_read(SILT_LIT("HTTP/1.1 100 Continue\r\n\r\n"), &status) < 0);
    assert_true(silt_http_connect_read(SILT_LIT("220 mail\r\n\r\n"), &status) < 0);
    assert_true(silt_http_connect_read(SILT_LIT("HTTP/2 200\r\n\r\n"), &status) < 0);
}

TEST(a_head_that_comes_in_bytes_is_read_by_the_line)
{
    assert_true(silt_http_connect_has_more(SILT_LIT(""), SILT_LIT("G")));
    assert_false(silt_http_connect_has_more(SILT_LIT("G"), SILT_LIT("E")));
    assert_true(silt_http_connect_has_more(SILT_LIT("GET / HTTP/1.1\r"), SILT_LIT("\n")));
    assert_true(silt_http_connect_has_more(SILT_LIT("\x16\x03"), SILT_LIT("\x01")));
    static char full[SILT_HTTP_CONNECT_PEEK_MAX - 1];
    assert_true(silt_http_connect_has_more((silt_slice){full, sizeof(full)}, SILT_LIT("x")));
}
