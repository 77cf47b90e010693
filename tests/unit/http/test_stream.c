/* SPDX-License-Identifier: Apache-2.0 */
/* Streamed answers, clients that leave, and back-pressure. */
#include "unit/http/rig.h"

#include <sys/socket.h>

static struct rig_client c;

static void start_stream(const char *request)
{
    rig_start();
    rig_connect(&c);
    rig_say(&c, request);
    rig_until(rig.kept_count == 1);
}

static void stop(void)
{
    rig_hang_up(&c);
    rig_stop();
}

TEST(a_stream_is_chunked_and_leaves_as_it_is_written)
{
    start_stream("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n");
    rig_expect(&c, "Cache-Control: no-cache\r\nX-Extra: yes\r\n\r\n");
    silt_http_write(rig.kept[0], SILT_LIT("data: one\n\n"));
    rig_expect(&c, "b\r\ndata: one\n\n\r\n");
    silt_http_write(rig.kept[0], SILT_LIT(""));
    silt_http_write(rig.kept[0], SILT_LIT("0123456789abcdef"));
    rig_expect(&c, "10\r\n0123456789abcdef\r\n");
    assert_int_equal(silt_http_pending(rig.kept[0]), 0);
    silt_http_end(rig.kept[0]);
    rig_expect(&c, "0\r\n\r\n");
    assert_int_equal(rig.answered, 1);
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "hello");
    assert_int_equal(rig.gone, 0);
    stop();
}

TEST(a_stream_to_http_1_0_ends_with_the_connection)
{
    start_stream("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    silt_http_write(rig.kept[0], SILT_LIT("one"));
    silt_http_write(rig.kept[0], SILT_LIT("two"));
    silt_http_end(rig.kept[0]);
    rig_expect(&c, "Connection: close\r\n");
    rig_expect(&c, "\r\n\r\nonetwo");
    rig_expect_end(&c);
    stop();
}

TEST(a_stream_to_head_has_no_body)
{
    start_stream("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    silt_http_write(rig.kept[0], SILT_LIT("one"));
    silt_http_end(rig.kept[0]);
    rig_expect(&c, "\r\n\r\n");
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "HTTP/1.1 200 OK\r\n");
    assert_null(memmem(c.heard.data, c.heard.len, "one", 3));
    stop();
}

TEST(an_answer_of_known_length_has_no_chunks_and_never_more_than_it_said)
{
    start_stream("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    silt_http_begin_sized(rig.kept[0], 206, SILT_LIT("text/plain"), SILT_LIT("X-Own: 1\r\n"), 10);
    rig_expect(&c, "HTTP/1.1 206 Partial Content\r\n");
    rig_expect(&c, "Content-Length: 10\r\nX-Own: 1\r\n");
    silt_http_write(rig.kept[0], SILT_LIT("01234"));
    silt_http_write(rig.kept[0], SILT_LIT("56789too much"));
    silt_http_end(rig.kept[0]);
    rig_expect(&c, "\r\n\r\n0123456789");
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "HTTP/1.1 200 OK\r\n");
    assert_null(memmem(c.heard.data, c.heard.len, "too much", 8));
    stop();
}

TEST(an_answer_that_turns_out_shorter_than_it_said_is_cut)
{
    start_stream("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    silt_http_begin_sized(rig.kept[0], 200, SILT_LIT("text/plain"), SILT_LIT(""), 10);
    silt_http_write(rig.kept[0], SILT_LIT("01234"));
    silt_http_end(rig.kept[0]);
    rig_until(silt_http_server_connections(rig.server) == 0);
    stop();
}

TEST(an_answer_of_known_length_to_head_has_the_length_only)
{
    start_stream("HEAD /later HTTP/1.1\r\nHost: x\r\n\r\n");
    silt_http_begin_sized(rig.kept[0], 200, SILT_LIT("text/plain"), SILT_LIT(""), 5000000000);
    silt_http_end(rig.kept[0]);
    rig_expect(&c, "Content-Length: 5000000000\r\n");
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "HTTP/1.1 200 OK\r\n");
    stop();
}

TEST(a_client_that_resets_while_its_answer_is_prepared_is_gone)
{
    start_stream("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_reset(&c);
    rig_until(rig.gone == 1);
    assert_null(rig.kept[0]);
    assert_int_equal(rig.answered, 1);
    assert_int_equal(rig.last_status, 499);
    rig_until(silt_http_server_connections(rig.server) == 0);
    rig_stop();
}

TEST(a_client_that_resets_with_more_requests_underway_is_gone)
{
    start_stream("GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 5; i++)
        rig_turn();
    rig_reset(&c);
    rig_until(rig.gone == 1);
    assert_int_equal(rig.answered, 1);
    rig_stop();
}

TEST(a_client_that_half_closes_still_gets_its_answers)
{
    start_stream("GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
    for (int i = 0; i < 5; i++)
        rig_turn();
    assert_int_equal(rig.gone, 0);
    silt_http_reply(rig.kept[0], 200, SILT_LIT(""), SILT_LIT(""), SILT_LIT("late"));
    rig_expect(&c, "late");
    rig_expect(&c, "hello");
    rig_expect_end(&c);
    stop();
}

TEST(a_half_closed_client_that_resets_is_gone)
{
    start_stream("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
    for (int i = 0; i < 5; i++)
        rig_turn();
    assert_int_equal(rig.gone, 0);
    rig_reset(&c);
    rig_until(rig.gone == 1);
    rig_stop();
}

TEST(a_client_that_leaves_a_stream_is_gone_and_writes_are_harmless)
{
    start_stream("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_hang_up(&c);
    for (int64_t until = rig_clock() + RIG_PATIENCE_MS; rig.gone == 0 && rig_clock() < until;
         rig_turn()) {
        silt_http_write(rig.kept[0], SILT_LIT("data\n"));
        silt_http_write(rig.kept[0], SILT_LIT("data\n"));
        silt_http_write(rig.kept[0], SILT_LIT("data\n"));
    }
    assert_int_equal(rig.gone, 1);
    assert_int_equal(rig.last_status, 200);
    rig_stop();
}

TEST(an_answer_to_a_client_that_has_left_is_harmless)
{
    start_stream("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_hang_up(&c);
    for (int i = 0; i < 3; i++)
        silt_http_write(rig.kept[0], SILT_LIT("data\n"));
    silt_http_end(rig.kept[0]);
    rig_until(silt_http_server_connections(rig.server) == 0);
    assert_int_equal(rig.gone, 0);
    assert_int_equal(rig.answered, 1);
    rig_stop();
}

TEST(a_body_that_breaks_off_takes_the_request_away)
{
    rig_start();
    rig_connect(&c);
    rig_say(&c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
    rig_hang_up(&c);
    rig_until(rig.gone == 1);
    rig_stop();
}

TEST(a_slow_reader_holds_the_source_back_and_costs_no_memory)
{
    rig_start();
    rig.flood_size = 50000000;
    size_t before = rig_memory();
    rig_connect(&c);
    rig_say(&c, "GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 50; i++)
        rig_turn();
    assert_true(rig.flood_done < rig.flood_size);
    assert_true(rig.pending_max < SILT_HTTP_MARK + 20000);
    assert_true(rig_memory() < before + 4 * SILT_HTTP_MARK);
    size_t total = 0;
    for (int64_t until = rig_clock() + RIG_PATIENCE_MS;
         rig_clock() < until && !rig_heard(&c, "\r\n0\r\n\r\n");) {
        rig_turn();
        size_t keep = c.heard.len < 16 ? c.heard.len : 16;
        total += c.heard.len - keep;
        silt_buf_drop(&c.heard, c.heard.len - keep);
    }
    assert_true(total + c.heard.len > rig.flood_size);
    assert_true(rig.drained > 10);
    assert_true(rig.pending_max < SILT_HTTP_MARK + 20000);
    stop();
}

TEST(pipelined_large_answers_wait_for_the_reader)
{
    rig_start();
    rig_connect(&c);
    size_t before = rig_memory();
    for (int i = 0; i < 20; i++)
        rig_say(&c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 50; i++)
        rig_turn();
    assert_true(rig_memory() < before + 12000000);
    assert_true(rig.answered <= 3);
    for (int i = 0; i < 20; i++) {
        rig_expect(&c, "Content-Length: 5000000\r\n");
        rig_until(c.heard.len > 4900000 || rig_heard(&c, "no such text"));
        silt_buf_drop(&c.heard, 4900000);
    }
    stop();
}

TEST(a_cut_stream_is_not_mistaken_for_a_complete_one)
{
    start_stream("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    silt_http_write(rig.kept[0], SILT_LIT("part"));
    silt_http_cut(rig.kept[0]);
    rig_expect(&c, "4\r\npart\r\n");
    rig_expect_end(&c);
    assert_int_equal(c.heard.len, 0);
    assert_int_equal(rig.gone, 0);
    stop();
    start_stream("GET /stream HTTP/1.0\r\n\r\n");
    silt_http_write(rig.kept[0], SILT_LIT("part"));
    silt_http_cut(rig.kept[0]);
    rig_until(rig_heard(&c, "no such text") || c.reset);
    stop();
}

TEST(a_request_may_be_cut_at_once)
{
    rig_start();
    rig_connect(&c);
    rig_say(&c, "GET /cut HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_until(rig_heard(&c, "no such text") || c.reset || c.closed);
    assert_int_equal(c.heard.len, 0);
    assert_int_equal(rig.answered, 1);
    stop();
}

TEST(freeing_the_server_tells_the_handlers)
{
    start_stream("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    struct rig_client second;
    rig_connect(&second);
    rig_say(&second, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_until(rig.kept_count == 2);
    silt_http_server_free(rig.server);
    rig.server = NULL;
    assert_int_equal(rig.gone, 2);
    rig_hang_up(&second);
    stop();
}
