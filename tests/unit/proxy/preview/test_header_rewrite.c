/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/unit.h"
#include "proxy/preview/header_rewrite.h"

static struct silt_http_head head, again;

static void rewrite_request(const char *text, uint32_t flags, bool upgrade, struct silt_buf *out)
{
    struct silt_host_rule rule = {.domain = SILT_LIT("d:1")};
    struct silt_host host;
    assert_int_equal(silt_http_parse(&head, silt_slice_of(text), SILT_HTTP_REQUEST),
                     (int)strlen(text));
    assert_int_equal(silt_host_read(&rule, &head, &host), 0);
    struct silt_header_rewrite_visit visit = {
        .host = &host, .address = "192.0.2.7", .flags = flags, .port = 8000, .upgrade = upgrade};
    silt_buf_init(out, SILT_HEADER_REWRITE_MAX);
    silt_header_rewrite_request(out, &head, &visit);
    assert_int_equal(silt_http_parse(&again, silt_buf_slice(out), SILT_HTTP_REQUEST),
                     (int)out->len);
}

static void rewrite_answer(const char *text, struct silt_header_rewrite_answer a,
                           struct silt_buf *out)
{
    assert_int_equal(silt_http_parse(&head, silt_slice_of(text), SILT_HTTP_RESPONSE),
                     (int)strlen(text));
    silt_buf_init(out, SILT_HEADER_REWRITE_MAX);
    silt_header_rewrite_answer(out, &head, &a);
    assert_int_equal(silt_http_parse(&again, silt_buf_slice(out), SILT_HTTP_RESPONSE),
                     (int)out->len);
}

TEST(a_service_hears_of_the_visitor_from_us_alone)
{
    silt_auto_buf out = {0};
    rewrite_request("GET /a?b&silt-proof=p&c HTTP/1.1\r\nHost: x.d:1\r\nX-Forwarded-For: "
                    "1.1.1.1\r\nx-forwarded-secret: 1\r\n"
                    "Forwarded: for=1.1.1.1\r\nX-Real-IP: 1.1.1.1\r\nX-Kept: 1\r\n\r\n",
                    0, false, &out);
    assert_text(silt_buf_slice(&out),
                "GET /a?b&c HTTP/1.1\r\nHost: x.d:1\r\nX-Kept: 1\r\nX-Forwarded-For: 192.0.2.7\r\n"
                "X-Forwarded-Host: x.d:1\r\nX-Forwarded-Proto: http\r\n\r\n");
}

TEST(what_is_said_to_the_next_hop_only_stays_there)
{
    silt_auto_buf out = {0};
    rewrite_request("POST / HTTP/1.1\r\nHost: x.d:1\r\nConnection: close, X-Auth, "
                    "content-length\r\nX-Auth: me\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
                    "Proxy-Authorization: x\r\nUpgrade: websocket\r\nTrailer: a\r\nContent-Length: "
                    "3\r\nExpect: 100-continue\r\n\r\n",
                    SILT_PREVIEW_LOCALHOST, false, &out);
    assert_text(
        silt_buf_slice(&out),
        "POST / HTTP/1.1\r\nHost: localhost:8000\r\nContent-Length: 3\r\nExpect: 100-continue\r\n"
        "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: x.d:1\r\nX-Forwarded-Proto: http\r\n\r\n");
}

TEST(connection_does_not_name_fields_without_end)
{
    silt_auto_buf text = {0}, out = {0}, back = {0};
    struct silt_host host = {.path = SILT_LIT("/")};
    struct silt_header_rewrite_visit visit = {.host = &host, .address = "192.0.2.7"};
    struct silt_header_rewrite_answer answer = {.as = SILT_BODY_FRAMING_NONE};
    silt_buf_init(&text, SILT_HTTP_HEAD_MAX);
    silt_buf_init(&out, SILT_HEADER_REWRITE_MAX);
    silt_buf_init(&back, SILT_HEADER_REWRITE_MAX);
    silt_buf_add(&text, SILT_LIT("GET / HTTP/1.1\r\nHost: x.d:1\r\nConnection: a"));
    for (int i = 0; i < 32; i++)
        silt_buf_add(&text, SILT_LIT(",b"));
    silt_buf_add(&text, SILT_LIT("\r\n\r\n"));
    assert_int_equal(silt_http_parse(&head, silt_buf_slice(&text), SILT_HTTP_REQUEST),
                     (int)text.len);
    silt_header_rewrite_request(&out, &head, &visit);
    assert_true(out.broken);
    silt_header_rewrite_answer(&back, &head, &answer);
    assert_true(back.broken);
}

TEST(our_cookie_is_not_the_services_and_a_caged_one_gets_none)
{
    silt_auto_buf out = {0}, caged = {0}, none = {0};
    const char *text =
        "GET / HTTP/1.1\r\nHost: x.d:1\r\nCookie: a=1;silt-proof=p; silt-login=1-f; b=2\r\n\r\n";
    rewrite_request(text, 0, false, &out);
    assert_text(silt_http_field(&again, SILT_LIT("cookie")), "a=1; b=2");
    rewrite_request(text, SILT_PREVIEW_CAGED, false, &caged);
    assert_null(silt_http_field(&again, SILT_LIT("cookie")).data);
    rewrite_request("GET / HTTP/1.1\r\nHost: x.d:1\r\nCookie: silt-login=1-f;silt-proof=p\r\n\r\n",
                    0, false, &none);
    assert_null(silt_http_field(&again, SILT_LIT("cookie")).data);
}

TEST(an_upgrade_is_asked_for_anew)
{
    silt_auto_buf out = {0};
    rewrite_request("GET /ws HTTP/1.1\r\nHost: x.d:1\r\nConnection: keep-alive, "
                    "Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
                    0, true, &out);
    assert_true(again.upgrade);
    assert_text(silt_http_field(&again, SILT_LIT("connection")), "Upgrade");
    assert_text(silt_http_field(&again, SILT_LIT("sec-websocket-key")), "k");
}

TEST(an_answer_is_framed_by_us)
{
    silt_auto_buf out = {0}, empty = {0}, close = {0};
    rewrite_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x-hop\r\nX-Hop: "
                   "1\r\nAlt-Svc: h3\r\nSet-Cookie: a=1\r\n\r\n",
                   (struct silt_header_rewrite_answer){.as = SILT_BODY_FRAMING_CHUNKED}, &out);
    assert_text(silt_buf_slice(&out),
                "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nTransfer-Encoding: chunked\r\n\r\n");
    rewrite_answer("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
                   (struct silt_header_rewrite_answer){0}, &empty);
    assert_text(silt_buf_slice(&empty), "HTTP/1.1 204 No Content\r\n\r\n");
    rewrite_answer(
        "HTTP/1.0 200\r\n\r\n",
        (struct silt_header_rewrite_answer){.as = SILT_BODY_FRAMING_TO_END, .close = true}, &close);
    assert_text(silt_buf_slice(&close), "HTTP/1.1 200 \r\nConnection: close\r\n\r\n");
}

TEST(a_service_cannot_set_our_cookie)
{
    silt_auto_buf out = {0};
    rewrite_answer("HTTP/1.1 200 OK\r\nSet-Cookie: silt-proof=x; Domain=d\r\nSet-Cookie: "
                   "Silt-Proof =y\r\nSet-Cookie: silt-proofs=z\r\n\r\n",
                   (struct silt_header_rewrite_answer){.as = SILT_BODY_FRAMING_NONE}, &out);
    assert_text(silt_buf_slice(&out), "HTTP/1.1 200 OK\r\nSet-Cookie: silt-proofs=z\r\n\r\n");
}

TEST(a_caged_answer_has_no_cookies_and_no_say_over_the_origin)
{
    silt_auto_buf out = {0};
    rewrite_answer(
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nClear-Site-Data: \"*\"\r\nContent-Length: 0\r\n\r\n",
        (struct silt_header_rewrite_answer){.flags = SILT_PREVIEW_CAGED}, &out);
    assert_text(silt_buf_slice(&out),
                "HTTP/1.1 200 OK\r\nContent-Security-Policy: sandbox allow-scripts allow-forms\r\n"
                "X-Content-Type-Options: nosniff\r\nContent-Length: 0\r\n\r\n");
}

TEST(answers_that_can_be_read_in_two_ways_are_refused)
{
    static const char *const bad[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 1\n\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (silt_http_parse(&head, silt_slice_of(bad[i]), SILT_HTTP_RESPONSE) >= 0)
            fail_msg("%s", bad[i]);
    const char *offers = "HTTP/1.1 200 OK\r\nUpgrade: h2,h2c\r\nConnection: Upgrade\r\nHost: odd "
                         "host\r\nExpect: nothing\r\n\r\n";
    assert_int_equal(silt_http_parse(&head, silt_slice_of(offers), SILT_HTTP_RESPONSE),
                     (int)strlen(offers));
}

static struct silt_body_framing body_of(const char *text, bool to_head)
{
    assert_true(silt_http_parse(&head, silt_slice_of(text), SILT_HTTP_RESPONSE) > 0);
    return silt_body_framing_of_answer(&head, to_head);
}

TEST(some_answers_never_have_a_body)
{
    assert_int_equal(body_of("HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", false).kind,
                     SILT_BODY_FRAMING_NONE);
    assert_int_equal(body_of("HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n", false).kind,
                     SILT_BODY_FRAMING_NONE);
    assert_int_equal(body_of("HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\n", true).kind,
                     SILT_BODY_FRAMING_NONE);
    assert_int_equal(body_of("HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\n", false).kind,
                     SILT_BODY_FRAMING_LENGTH);
    assert_int_equal(body_of("HTTP/1.1 200 x\r\n\r\n", false).kind, SILT_BODY_FRAMING_TO_END);
}

TEST(a_body_ends_where_it_says_and_is_written_on_in_pieces)
{
    struct silt_body_framing b = {.kind = SILT_BODY_FRAMING_LENGTH, .left = 5};
    silt_slice in = SILT_LIT("hello next"), data;
    silt_auto_buf out;
    silt_buf_init(&out, 100);
    assert_int_equal(silt_body_framing_next(&b, &in, &data), SILT_HTTP_CHUNK_DATA);
    silt_body_framing_put(SILT_BODY_FRAMING_CHUNKED, &out, data);
    assert_int_equal(silt_body_framing_next(&b, &in, &data), SILT_HTTP_CHUNK_END);
    silt_body_framing_end(SILT_BODY_FRAMING_CHUNKED, &out);
    assert_text(silt_buf_slice(&out), "5\r\nhello\r\n0\r\n\r\n");
    assert_text(in, " next");
}
