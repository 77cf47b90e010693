/* SPDX-License-Identifier: Apache-2.0 */
#include "super/listen.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

TEST(port_zero_takes_a_free_port_and_tells_it)
{
    silt_auto_fd fd = -1, again = -1;
    char text[SILT_LISTEN_TEXT], other[SILT_LISTEN_TEXT];
    struct silt_error e;
    assert_int_equal(silt_listen_open("127.0.0.1:0", false, &fd, text, &e), 0);
    assert_int_equal(strncmp(text, "127.0.0.1:", 10), 0);
    assert_string_not_equal(text, "127.0.0.1:0");
    assert_int_equal(silt_listen_open(text, false, &again, other, &e), -1); /* after its patience */
    assert_non_null(strstr(e.text, text));
}

TEST(a_port_of_loopback_is_taken_when_it_is_free_and_nobody_elses)
{
    silt_auto_fd any = -1, again = -1;
    struct sockaddr_in at;
    socklen_t len = sizeof(at);
    struct silt_error e;
    assert_int_equal(silt_listen_loopback(0, &any, &e), 0);
    assert_int_equal(getsockname(any, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(ntohl(at.sin_addr.s_addr), INADDR_LOOPBACK);
    assert_int_equal(silt_listen_loopback(ntohs(at.sin_port), &again, &e), -1);
    assert_int_equal(e.sys, EADDRINUSE);
    silt_close_fd(&any);
    assert_int_equal(silt_listen_loopback(ntohs(at.sin_port), &again, &e), 0);
    silt_close_fd(&again);
    assert_int_equal(silt_listen_loopback(1023, &again, &e), -1);
    assert_int_equal(silt_listen_loopback(65536 + 8080, &again, &e), -1);
    assert_int_equal(e.code, SILT_INVALID);
}

TEST(an_address_that_is_none_is_refused)
{
    const char *bad[] = {"",        ":80",  "127.0.0.1", "localhost:80", "127.0.0.1:http",
                         "1.2.3:x", "[::1]"};
    char text[SILT_LISTEN_TEXT];
    struct silt_error e;
    for (size_t i = 0; i < SILT_COUNT(bad); i++) {
        silt_auto_fd fd = -1;
        if (silt_listen_open(bad[i], false, &fd, text, &e) == 0)
            fail_msg("%s was taken", bad[i]);
    }
}
