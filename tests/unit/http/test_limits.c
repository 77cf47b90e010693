/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, deadlines and the end of a server. */
#include "unit/http/rig.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

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

TEST(an_announced_body_beyond_the_limit_is_refused_unread)
{
    start();
    rig_say(&c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n");
    rig_expect(&c, "HTTP/1.1 413 Content Too Large\r\n");
    rig_expect(&c, "Connection: close\r\n");
    rig_expect(&c, "{\"refused\":413}");
    rig_expect_end(&c);
    assert_int_equal(rig.gone, 1);
    assert_int_equal(rig.last_status, 413);
    stop();
}

TEST(a_chunked_body_beyond_the_limit_is_refused_when_it_gets_there)
{
    static char body[2 << 20];
    start();
    rig_say(&c, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n");
    rig_say_bytes(&c, (silt_slice){body, sizeof(body)});
    rig_expect(&c, "HTTP/1.1 413");
    rig_expect(&c, "{\"refused\":413}");
    rig_expect_end(&c);
    stop();
}

TEST(the_servers_own_limit_holds_for_every_handler)
{
    start();
    rig_say(&c, "POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 4194305\r\n\r\n");
    rig_expect(&c, "HTTP/1.1 413");
    rig_expect_end(&c);
    stop();
}

TEST(memory_for_a_body_grows_with_what_arrives)
{
    start();
    rig_turn();
    size_t before = rig_memory();
    rig_say(&c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\nabc");
    for (int i = 0; i < 10; i++)
        rig_turn();
    assert_true(rig_memory() < before + 40000);
    rig_say(&c, "defg");
    rig_turn();
    assert_int_equal(rig.gone, 0);
    stop();
}

TEST(a_head_that_comes_too_slowly_is_cut_off)
{
    rig_limits();
    rig.limits.head_timeout_ms = 60;
    start();
    rig_say(&c, "GET /hello HTTP/1.1\r\n");
    for (int64_t until = rig_clock() + 2000; rig_clock() < until && !rig_heard(&c, "408");) {
        (void)send(c.fd, "X: y\r\n", 6, MSG_NOSIGNAL);
        for (int64_t pause = rig_clock() + 5; rig_clock() < pause;)
            rig_turn();
    }
    rig_expect(&c, "HTTP/1.1 408 Request Timeout\r\n");
    rig_expect(&c, "{\"refused\":408}");
    rig_expect_end(&c);
    stop();
}

TEST(silence_inside_a_body_is_cut_off)
{
    rig_limits();
    rig.limits.body_timeout_ms = 2000;
    start();
    rig_say(&c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    for (int i = 0; i < 4; i++) { /* progress moves the deadline */
        static const char some[2000];
        rig_say_bytes(&c, (silt_slice){some, sizeof(some)});
        for (int64_t pause = rig_clock() + 900; rig_clock() < pause;)
            rig_turn();
        assert_int_equal(rig.gone, 0);
    }
    rig_expect(&c, "HTTP/1.1 408");
    rig_expect_end(&c);
    assert_int_equal(rig.gone, 1);
    assert_int_equal(rig.last_status, 408);
    stop();
}

TEST(a_body_in_drops_is_no_progress)
{
    rig_limits();
    rig.limits.body_timeout_ms = 60;
    start();
    rig_say(&c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    for (int64_t until = rig_clock() + 2000; rig_clock() < until && !rig_heard(&c, "408");) {
        (void)send(c.fd, "x", 1, MSG_NOSIGNAL);
        for (int64_t pause = rig_clock() + 5; rig_clock() < pause;)
            rig_turn();
    }
    rig_expect(&c, "HTTP/1.1 408");
    stop();
}

TEST(a_paused_body_has_no_deadline)
{
    rig_limits();
    rig.limits.body_timeout_ms = 400;
    start();
    rig_say(&c, "POST /pause HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
    rig_until(rig.kept_count == 1);
    for (int64_t pause = rig_clock() + 1200; rig_clock() < pause;)
        rig_turn();
    assert_int_equal(rig.gone, 0);
    silt_http_pause(rig.kept[0], false);
    rig_say(&c, "cde");
    rig_expect(&c, "\r\n\r\n5");
    stop();
}

TEST(an_idle_connection_is_closed_in_silence)
{
    rig_limits();
    rig.limits.idle_timeout_ms = 400;
    start();
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "hello");
    int64_t before = rig_clock();
    rig_expect_end(&c);
    assert_true(rig_clock() - before >= 390);
    assert_int_equal(c.heard.len, 0);
    assert_int_equal(rig.refusals, 0);
    stop();
}

TEST(a_request_being_answered_is_not_idle)
{
    rig_limits();
    rig.limits.idle_timeout_ms = 400; /* this machine may stand still for a while */
    rig.limits.head_timeout_ms = 400;
    rig.limits.body_timeout_ms = 400;
    rig.limits.write_timeout_ms = 400;
    start();
    rig_say(&c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_until(rig.kept_count == 1);
    for (int64_t pause = rig_clock() + 1600; rig_clock() < pause;)
        rig_turn();
    assert_int_equal(rig.gone, 0);
    silt_http_reply(rig.kept[0], 200, SILT_LIT(""), SILT_LIT(""), SILT_LIT("late"));
    rig_expect(&c, "late");
    stop();
}

TEST(a_client_that_does_not_read_is_cut)
{
    rig_limits();
    rig.limits.write_timeout_ms = 60;
    rig.flood_size = 100000000;
    start();
    rig_say(&c, "GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_until(rig.gone == 1);
    assert_int_equal(silt_http_server_connections(rig.server), 0);
    stop();
}

TEST(connections_beyond_the_limit_are_closed_at_once)
{
    rig_limits();
    rig.limits.connections = 2;
    struct rig_client more[2];
    start();
    rig_connect(&more[0]);
    rig_until(silt_http_server_connections(rig.server) == 2);
    rig_connect(&more[1]);
    rig_until(rig_heard(&more[1], "no such text") || more[1].closed || more[1].reset);
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "hello");
    rig_hang_up(&more[0]);
    rig_hang_up(&more[1]);
    rig_until(silt_http_server_connections(rig.server) == 1);
    rig_connect(&more[0]);
    rig_say(&more[0], "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&more[0], "hello");
    rig_hang_up(&more[0]);
    stop();
}

TEST(without_descriptors_a_client_is_sent_away_and_the_server_lives)
{
    struct rlimit before, none;
    struct rig_client more;
    start();
    rig_until(silt_http_server_connections(rig.server) == 1);
    rig_connect(&more);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    (void)close(next);
    none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rig_until(rig_heard(&more, "no such text") || more.closed || more.reset);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    rig_hang_up(&more);
    rig_connect(&more);
    rig_say(&more, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&more, "hello");
    rig_hang_up(&more);
    stop();
}

TEST(an_idle_connection_costs_next_to_nothing)
{
    enum { MANY = 400 };
    static struct rig_client many[MANY];
    start();
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "hello");
    for (int i = 0; i < MANY; i++) {
        rig_connect(&many[i]);
        if (i % 20 == 0)
            rig_turn();
    }
    size_t before = rig_memory();
    rig_until(silt_http_server_connections(rig.server) == MANY + 1);
    for (int i = 0; i < MANY; i++) {
        rig_say(&many[i], "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        rig_expect(&many[i], "hello");
        silt_buf_fini(&many[i].heard);
    }
    assert_true(rig_memory() < before + (size_t)MANY * 2048);
    for (int i = 0; i < MANY; i++)
        rig_hang_up(&many[i]);
    rig_until(silt_http_server_connections(rig.server) == 1);
    stop();
}

static void on_closed(void *context)
{
    assert_ptr_equal(context, &rig);
    rig.closed++;
}

TEST(a_drained_server_finishes_what_is_running)
{
    struct rig_client idle, half;
    start();
    rig_connect(&idle);
    rig_connect(&half);
    rig_say(&c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_say(&half, "GET /hello HTTP/1.1\r\nHo");
    rig_until(rig.kept_count == 1 && silt_http_server_connections(rig.server) == 3);
    silt_http_server_drain(rig.server, 5000, on_closed, &rig);
    rig_expect_end(&idle);
    rig_say(&half, "st: x\r\n\r\n");
    rig_expect(&half, "Connection: close\r\n");
    rig_expect(&half, "hello");
    rig_expect_end(&half);
    assert_int_equal(rig.closed, 0);
    silt_http_reply(rig.kept[0], 200, SILT_LIT(""), SILT_LIT(""), SILT_LIT("last"));
    rig_expect(&c, "Connection: close\r\n");
    rig_expect(&c, "last");
    rig_expect_end(&c);
    rig_until(rig.closed == 1);
    assert_int_equal(rig.gone, 0);
    rig_hang_up(&idle);
    rig_hang_up(&half);
    stop();
}

TEST(at_the_deadline_of_a_drain_the_rest_is_cut)
{
    start();
    rig_say(&c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_until(rig.kept_count == 1);
    silt_http_server_drain(rig.server, 40, on_closed, &rig);
    rig_until(rig.closed == 1);
    assert_int_equal(rig.gone, 1);
    stop();
}

static void on_closed_free(void *context)
{
    silt_http_server_free(rig.server);
    rig.server = NULL;
    on_closed(context);
}

TEST(a_server_without_clients_is_drained_at_once_and_may_be_freed_then)
{
    rig_start();
    silt_http_server_drain(rig.server, 5000, on_closed_free, &rig);
    assert_int_equal(rig.closed, 0);
    rig_until(rig.closed == 1);
    rig_stop();
}
