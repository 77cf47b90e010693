/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and plain answers. */
#include "unit/base/table.h"
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

TEST(a_request_is_answered_and_the_connection_kept)
{
    start();
    for (int i = 1; i <= 3; i++) {
        rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        rig_expect(&c, "HTTP/1.1 200 OK\r\n");
        rig_expect(&c, "\r\n\r\nhello");
        assert_int_equal(rig.answered, i);
        assert_int_equal(rig.last_status, 200);
    }
    assert_int_equal(silt_http_server_connections(rig.server), 1);
    stop();
}

TEST(an_answer_has_date_type_length_and_the_extra_fields)
{
    start();
    rig_say(&c, "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "HTTP/1.1 404 Not Found\r\nDate: ");
    rig_expect(&c,
               " GMT\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nX-Extra: yes\r\n\r\n");
    rig_expect(&c, "nothing there");
    stop();
}

TEST(pipelined_requests_are_answered_in_order)
{
    start();
    rig_say(
        &c,
        "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n"
        "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "hello");
    rig_expect(&c, "abc");
    rig_expect(&c, "nothing there");
    rig_expect(&c, "de");
    rig_expect(&c, "hello");
    stop();
}

TEST(a_pipelined_request_waits_for_the_answer_before_it)
{
    start();
    rig_say(&c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_say(&c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /hel");
    rig_until(rig.kept_count == 1);
    for (int i = 0; i < 5; i++)
        rig_turn();
    assert_int_equal(rig.answered, 0);
    assert_text(rig.kept[0]->head->path, "/later");
    silt_http_reply(rig.kept[0], 201, SILT_LIT(""), SILT_LIT(""), SILT_LIT("first"));
    rig_expect(&c, "201 Created\r\n");
    rig_expect(&c, "first");
    rig_expect(&c, "hello");
    rig_until(rig.kept_count == 2);
    silt_http_reply(rig.kept[1], 200, SILT_LIT(""), SILT_LIT(""), SILT_LIT("third"));
    rig_expect(&c, "third");
    rig_say(&c, "lo HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "hello");
    stop();
}

TEST(bytes_may_come_in_any_pieces)
{
    static const char script[] =
        "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789"
        "\r\nPOST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\nabcde\r\n1\r\nf\r\n0\r\nX: y\r\n\r\n"
        "POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nskip"
        "POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
        "chunked\r\n\r\n4\r\nskip\r\n0\r\n\r\n"
        "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    unsigned seed = 11;
    for (size_t piece = 0; piece < 40; piece++) {
        start();
        for (size_t at = 0; at < sizeof(script) - 1;) {
            size_t n = piece == 0 ? 1 + (size_t)rand_r(&seed) % 30 : piece;
            n = n < sizeof(script) - 1 - at ? n : sizeof(script) - 1 - at;
            rig_say_bytes(&c, (silt_slice){script + at, n});
            at += n;
        }
        static const char *const want[] = {
            "hello", "0123456789", "Content-Length: 1\r\n", "403", "403", "close", "hello"};
        for (size_t i = 0; i < SILT_COUNT(want); i++)
            rig_expect(&c, want[i]);
        rig_expect_end(&c);
        assert_int_equal(rig.answered, 6);
        assert_int_equal(rig.consumed, 6);
        stop();
    }
}

TEST(head_is_answered_without_a_body)
{
    start();
    rig_say(&c, "HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /empty HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "Content-Length: 5\r\nX-Extra: yes\r\n\r\nHTTP/1.1 204 No Content\r\n");
    rig_expect(&c, " GMT\r\nX-A: b\r\nX-Extra: yes\r\n\r\n");
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "HTTP/1.1 200");
    stop();
}

TEST(http_1_0_closes_unless_asked_to_stay)
{
    start();
    rig_say(&c, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    rig_expect(&c, "Connection: keep-alive\r\n");
    rig_expect(&c, "hello");
    rig_say(&c, "GET /hello HTTP/1.0\r\n\r\n");
    rig_expect(&c, "Connection: close\r\n");
    rig_expect(&c, "hello");
    rig_expect_end(&c);
    stop();
}

TEST(connection_close_is_obeyed_and_later_requests_ignored)
{
    start();
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "Connection: close\r\n");
    rig_expect(&c, "hello");
    rig_expect_end(&c);
    assert_int_equal(c.heard.len, 0);
    stop();
}

TEST(bodies_are_collected_whatever_their_framing)
{
    static char body[300000];
    char head[200];
    start();
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (char)('a' + i % 23);
    (void)snprintf(head, sizeof(head),
                   "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", sizeof(body));
    rig_say(&c, head);
    rig_say_bytes(&c, (silt_slice){body, sizeof(body)});
    rig_expect(&c, "\r\n\r\n");
    rig_until(rig_heard(&c, "no such text") || c.heard.len >= sizeof(body));
    assert_slice(silt_buf_slice(&c.heard), ((silt_slice){body, sizeof(body)}));
    silt_buf_clear(&c.heard);
    rig_say(&c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
                "POST /echo HTTP/1.1\r\nHost: x\r\n\r\n"
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    for (int i = 0; i < 3; i++)
        rig_expect(&c, "Content-Length: 0\r\n");
    stop();
}

TEST(a_body_may_be_consumed_in_pieces)
{
    static char body[1000000];
    start();
    rig_say(&c, "POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
    rig_say_bytes(&c, (silt_slice){body, sizeof(body)});
    rig_expect(&c, "\r\n\r\n1000000");
    assert_true(rig.pieces > 10);
    rig.consumed = 0;
    rig_say(&c, "POST /count HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "\r\n\r\n0");
    stop();
}

TEST(a_consumer_may_say_where_the_bytes_go_and_the_next_request_does_not_go_there)
{
    static char body[1000000];
    start();
    rig_say(&c, "POST /place HTTP/1.1\r\nHost: x\r\nContent-Length: 1000003\r\n\r\n");
    rig_say_bytes(&c, (silt_slice){body, sizeof(body)});
    rig_say(&c, "endPOST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nnext");
    rig_expect(&c, "\r\n\r\n1000003");
    rig_expect(&c, "\r\n\r\nnext");
    assert_true(rig.placed > 1 && rig.placed_max <= sizeof(rig.room));
    rig.placed = rig.consumed = 0;
    rig_say(&c, "POST /place HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    rig_say(&c, "3\r\nabc\r\n0\r\n\r\n");
    rig_expect(&c, "\r\n\r\n3");
    assert_int_equal(rig.placed, 0);
    stop();
}

TEST(a_paused_consumer_holds_the_client_back)
{
    enum { LENGTH = 64 << 20 }; /* more than any socket buffers */
    static char block[1 << 20];
    rig_limits();
    rig.limits.body_max = LENGTH;
    start();
    rig_say(&c, "POST /pause HTTP/1.1\r\nHost: x\r\nContent-Length: 67108864\r\n\r\nfirst");
    rig_until(rig.kept_count == 1);
    size_t sent = 5;
    for (int quiet = 0; quiet < 20; quiet++) {
        ssize_t n = send(c.fd, block, sizeof(block), MSG_NOSIGNAL);
        if (n > 0) {
            sent += (size_t)n;
            quiet = 0;
        }
        rig_turn();
    }
    assert_int_equal(rig.pieces, 1);
    assert_true(sent < LENGTH / 2); /* what is underway is the kernel's, not ours */
    silt_http_pause(rig.kept[0], false);
    for (; sent < LENGTH; sent += sizeof(block)) {
        size_t n = LENGTH - sent < sizeof(block) ? LENGTH - sent : sizeof(block);
        rig_say_bytes(&c, (silt_slice){block, n});
    }
    rig_expect(&c, "\r\n\r\n67108864");
    stop();
}

TEST(expect_100_continue_is_answered_when_the_body_is_wanted)
{
    start();
    rig_say(&c,
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    rig_expect(&c, "HTTP/1.1 100 Continue\r\n\r\n");
    rig_say(&c, "ok");
    rig_expect(&c, "HTTP/1.1 200 OK\r\n");
    rig_expect(&c, "\r\n\r\nok");
    rig_say(
        &c,
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nno");
    rig_expect(&c, "HTTP/1.1 200 OK\r\n");
    rig_say(&c,
            "POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    rig_expect(&c, "HTTP/1.1 403");
    rig_expect(&c, "Connection: close\r\n");
    rig_expect_end(&c);
    stop();
}

TEST(a_short_body_that_nobody_wants_is_skipped)
{
    static char body[60000];
    start();
    rig_say(&c, "POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n");
    rig_expect(&c, "403");
    rig_say_bytes(&c, (silt_slice){body, sizeof(body)});
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "hello");
    stop();
}

TEST(a_long_body_that_nobody_wants_ends_the_connection_but_not_the_answer)
{
    static char body[3000000];
    static const char *const heads[] = {
        "POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n",
        "POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2dc6c0\r\n"};
    for (size_t i = 0; i < SILT_COUNT(heads); i++) {
        start();
        rig_say(&c, heads[i]);
        rig_say_bytes(&c, (silt_slice){body, sizeof(body)});
        rig_expect(&c, "403");
        rig_expect(&c, "no");
        rig_expect_end(&c);
        stop();
    }
}

TEST(a_large_answer_arrives_whole_at_a_slow_reader)
{
    start();
    rig_say(&c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    rig_expect(&c, "Content-Length: 5000000\r\n");
    rig_expect(&c, "\r\n\r\n");
    rig_until(rig_heard(&c, "hello"));
    assert_true(c.heard.len > 5000000);
    for (size_t i = 0; i < 5000000; i += 997)
        assert_int_equal(c.heard.data[i], 'a' + i % 26);
    stop();
}

TEST(a_malformed_request_is_refused_with_the_envelope_and_closed)
{
    start();
    rig_say(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nBad\r\n\r\n");
    rig_expect(&c, "hello");
    rig_expect(&c, "HTTP/1.1 400 Bad Request\r\n");
    rig_expect(&c, "Content-Type: application/json\r\n");
    rig_expect(&c, "Connection: close\r\n");
    rig_expect(&c, "{\"refused\":400}");
    rig_expect_end(&c);
    assert_int_equal(rig.refusals, 1);
    assert_int_equal(rig.answered, 1);
    stop();
}

static void say_hostile(const struct table_case *k, const char *before)
{
    char status[4] = "";
    rig_connect(&c);
    rig_say(&c, before);
    rig_say_bytes(&c, k->bytes);
    rig_expect(&c, "HTTP/1.1 ");
    rig_until(c.heard.len > 3 || rig_heard(&c, "\r\n"));
    memcpy(status, c.heard.data, 3);
    if (status[0] != '4' && status[0] != '5')
        fail_msg("%s was answered %s", k->name, status);
    rig_expect_end(&c);
    rig_hang_up(&c);
}

static void check_hostile_head(void *context, const struct table_case *k)
{
    (void)context;
    if (k->verdict == 'n')
        say_hostile(k, "");
}

static void check_hostile_body(void *context, const struct table_case *k)
{
    (void)context;
    if (k->verdict == 'n')
        say_hostile(k, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(every_hostile_request_is_refused_and_the_connection_closed)
{
    rig_start();
    (void)table_each(HEADS, check_hostile_head, NULL);
    (void)table_each(CHUNKED, check_hostile_body, NULL);
    assert_int_equal(rig.answered, rig.gone);
    rig_stop();
}

TEST(a_broken_chunk_takes_the_request_from_its_handler)
{
    start();
    rig_say(&c,
            "POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nbad\n");
    rig_expect(&c, "HTTP/1.1 400");
    rig_expect_end(&c);
    assert_int_equal(rig.gone, 1);
    assert_int_equal(rig.answered, 1);
    assert_int_equal(rig.last_status, 400);
    stop();
}
