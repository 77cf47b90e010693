/* SPDX-License-Identifier: Apache-2.0 */
#include "http/conn.h"
#include "http/internal_request.h"
#include "unit/http/rig.h"

static struct {
    struct silt_http_internal_sink sink;
    int rooms, status;
    char body[64];
} told;

static void on_reply(struct silt_http_internal_sink *s, int status, silt_slice type,
                     silt_slice body)
{
    (void)s;
    (void)type;
    told.status = status;
    memcpy(told.body, body.data,
           body.len < sizeof(told.body) - 1 ? body.len : sizeof(told.body) - 1);
}

static void on_room(struct silt_http_internal_sink *s)
{
    (void)s;
    told.rooms++;
}

static struct silt_http_internal *ask(const char *head)
{
    struct silt_error e;
    memset(&told, 0, sizeof(told));
    told.sink.reply = on_reply;
    told.sink.room = on_room;
    struct silt_http_internal *i =
        silt_http_internal_new_fed(rig.server, silt_slice_of(head), &told.sink, &e);
    if (i == NULL)
        return NULL;
    rig.server->hooks.on_request(rig.server->hooks.context, silt_http_internal_request(i));
    silt_http_internal_deliver(i);
    return i;
}

#define HEAD(path) "POST " path " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

TEST(a_fed_body_is_taken_in_pieces_and_answered_at_its_end)
{
    rig_start();
    struct silt_http_internal *i = ask(HEAD("/count"));
    assert_int_equal(told.rooms, 1);
    assert_true(silt_http_internal_wants(i));
    silt_http_internal_feed(i, SILT_LIT("abc"), false);
    silt_http_internal_feed(i, SILT_LIT("de"), false);
    assert_int_equal(told.status, 0);
    silt_http_internal_feed(i, (silt_slice){NULL, 0}, true);
    assert_false(silt_http_internal_wants(i));
    assert_int_equal(told.status, 200);
    assert_string_equal(told.body, "5");
    rig_stop();
}

TEST(whoever_wants_the_whole_of_a_fed_body_is_refused)
{
    rig_start();
    struct silt_http_internal *i = ask(HEAD("/echo"));
    assert_int_equal(told.status, 413);
    assert_false(silt_http_internal_wants(i));
    assert_int_equal(told.rooms, 0);
    rig_stop();
}

TEST(a_fed_request_says_that_it_is_chunked)
{
    rig_start();
    assert_null(ask("POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
    assert_null(ask("POST /count HTTP/1.1\r\nHost: x\r\n\r\n"));
    rig_stop();
}
