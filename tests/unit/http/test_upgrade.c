/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that stop to be HTTP. */
#include "unit/http/rig.h"

#include <sys/socket.h>

static struct rig_client c;

static void start(void)
{
    rig_start();
    rig_connect(&c);
}

static void stop(void)
{
    rig_hang_up(&c);
    rig_stop();
}

TEST(an_upgraded_connection_carries_bytes_both_ways_as_they_are)
{
    start();
    rig_say(&c, "GET /upgrade HTTP/1.1\r\nHost: x\r\n\r\nearly");
    rig_expect(&c, "HTTP/1.1 101 Switching Protocols\r\nDate: ");
    rig_expect(&c, "GMT\r\nUpgrade: test\r\nX-Extra: yes\r\n\r\n"); /* and no Connection: close */
    rig_until(rig.consumed == 5);
    rig_say(&c, "GET /hello HTTP/1.1\r\n\r\n");
    rig_until(rig.consumed == 5 + 23);
    silt_http_write(rig.kept[0], SILT_LIT("0\r\n"));
    rig_expect(&c, "0\r\n");
    silt_http_end(rig.kept[0]);
    rig_expect_end(&c);
    assert_int_equal(rig.last_status, 101);
    assert_int_equal(rig.gone, 0);
    stop();
}

TEST(an_upgraded_connection_is_not_closed_for_its_silence)
{
    rig_limits();
    rig.limits.body_timeout_ms = rig.limits.idle_timeout_ms = rig.limits.head_timeout_ms = 400;
    start();
    rig_say(&c, "GET /upgrade HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "101 Switching");
    int64_t later = rig_clock() + 1600;
    rig_until(rig_clock() > later);
    assert_int_equal(rig.gone, 0);
    rig_say(&c, "x");
    rig_until(rig.consumed == 1);
    stop();
}

TEST(a_client_that_leaves_an_upgraded_connection_is_noticed)
{
    start();
    rig_say(&c, "GET /upgrade HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "101 Switching");
    rig_hang_up(&c);
    rig_until(rig.gone == 1);
    rig_stop();
}

TEST(a_request_with_a_body_cannot_be_upgraded)
{
    start();
    rig_say(&c, "GET /upgrade HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
    rig_expect(&c, "HTTP/1.1 400 ");
    stop();
}

TEST(a_connection_is_taken_over_with_what_was_said)
{
    char text[32];
    start();
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\nPOST /take HTTP/1.1\r\nHost: "
                "x\r\nContent-Length: 9\r\n\r\nbody");
    rig_expect(&c, "hello");
    rig_until(rig.taken_fd >= 0);
    assert_text(silt_buf_slice(&rig.taken), "body");
    assert_int_equal(silt_http_server_connections(rig.server), 0);
    assert_int_equal(rig.answered, 2);
    rig_say(&c, " more");
    ssize_t n = 0;
    rig_until((n = recv(rig.taken_fd, text, sizeof(text), 0)) > 0);
    assert_text(((silt_slice){text, (size_t)n}), " more");
    assert_int_equal(send(rig.taken_fd, "mine", 4, MSG_NOSIGNAL), 4);
    rig_expect(&c, "mine");
    assert_int_equal(rig.gone, 0);
    silt_close_fd(&rig.taken_fd);
    rig_expect_end(&c);
    stop();
}

TEST(a_connection_is_taken_over_when_earlier_answers_are_out)
{
    start();
    rig_say(&c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\nGET /take HTTP/1.1\r\nHost: x\r\n\r\nrest");
    rig_expect(&c, "xyz");
    rig_until(rig_heard(&c, "never") || rig.taken_fd >= 0);
    assert_text(silt_buf_slice(&rig.taken), "rest");
    silt_close_fd(&rig.taken_fd);
    rig_expect_end(&c);
    stop();
}
