/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/protocol_sniff.h"
#include "base/own.h"
#include "unit/base/unit.h"
#include "unit/proxy/hello.h"

/* What becomes of bytes that come in pieces of this size: names with a comma behind each, "-" for
 * something without a name, then how many bytes passed and, if so, why no more. */
static const char *fate(silt_slice bytes, size_t piece)
{
    static char said[2048];
    struct silt_protocol_sniff i = {0};
    size_t from = 0, to = 0, len = 0;
    said[0] = 0;
    while (from < bytes.len) {
        to = to + piece < bytes.len ? to + piece : bytes.len;
        for (bool more = false; from < to && !more;) {
            size_t n = 0;
            switch (silt_protocol_sniff_next(&i, (silt_slice){bytes.data + from, to - from}, &n)) {
            case SILT_PROTOCOL_SNIFF_MORE:
                more = true;
                break;
            case SILT_PROTOCOL_SNIFF_PASS:
                break;
            case SILT_PROTOCOL_SNIFF_NAMED:
                len += (size_t)snprintf(said + len, sizeof(said) - len, "%s,", i.name);
                break;
            case SILT_PROTOCOL_SNIFF_NAMELESS:
                len += (size_t)snprintf(said + len, sizeof(said) - len, "-,");
                break;
            case SILT_PROTOCOL_SNIFF_REFUSE:
                (void)snprintf(said + len, sizeof(said) - len, "%zu refused %d", from, i.reason);
                return said;
            }
            from += n;
        }
        if (to == bytes.len)
            break;
    }
    (void)snprintf(said + len, sizeof(said) - len, "%zu", from);
    return said;
}

static void assert_fate(silt_slice bytes, const char *want)
{
    for (size_t piece = 1; piece <= bytes.len; piece = piece < 8 ? piece + 1 : piece * 3)
        if (strcmp(fate(bytes, piece), want) != 0)
            fail_msg("%.60s in pieces of %zu: %s, wanted %s", bytes.data, piece, fate(bytes, piece),
                     want);
    if (strcmp(fate(bytes, bytes.len), want) != 0)
        fail_msg("%.60s at once: %s, wanted %s", bytes.data, fate(bytes, bytes.len), want);
}

#define GET "GET / HTTP/1.1\r\nHost: "

/* All of it passes. */
static void assert_passes(silt_slice bytes, const char *names)
{
    char want[256];
    (void)snprintf(want, sizeof(want), "%s%zu", names, bytes.len);
    assert_fate(bytes, want);
}

TEST(each_request_names_its_host)
{
    assert_passes(SILT_LIT(GET "a.test\r\n\r\n"), "a.test,");
    assert_passes(SILT_LIT(GET "A.Test.:8080\r\n\r\n" GET "b.test\r\n\r\n"), "a.test,b.test,");
    assert_passes(SILT_LIT("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 30\r\n\r\n" GET
                           "body\r\n\r\n" GET "b.test\r\n\r\n"),
                  "a.test,b.test,");
    assert_passes(SILT_LIT("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "3\r\nabc\r\n0\r\n\r\n" GET "b.test\r\n\r\n"),
                  "a.test,b.test,");
    assert_passes(SILT_LIT("GET http://A.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n"), "a.test,");
}

TEST(requests_that_two_servers_read_in_two_ways_are_refused)
{
    static const struct {
        silt_slice bytes;
        enum silt_egress_reason reason;
    } bad[] = {
        {SILT_LIT(GET "a.test\r\nHost: b.test\r\n\r\n"), SILT_REFUSED_PROTOCOL},
        {SILT_LIT("GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"), SILT_REFUSED_MISMATCH},
        {SILT_LIT("GET / HTTP/1.0\r\n\r\n"), SILT_REFUSED_NAMELESS},
        {SILT_LIT(GET "93.184.215.14\r\n\r\n"), SILT_REFUSED_NAMELESS},
        {SILT_LIT(GET "[::1]:80\r\n\r\n"), SILT_REFUSED_NAMELESS},
        {SILT_LIT(GET "a.test:b.test\r\n\r\n"), SILT_REFUSED_NAMELESS},
        {SILT_LIT("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n"), SILT_REFUSED_PROTOCOL},
        {SILT_LIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), SILT_REFUSED_PROTOCOL},
        {SILT_LIT("\r\n" GET "a.test\r\n\r\n"), SILT_REFUSED_PROTOCOL},
        {SILT_LIT("GET /\xc3\xa9 HTTP/1.1\r\nHost: b.test\r\n\r\n"), SILT_REFUSED_PROTOCOL},
        {SILT_LIT("GET /\x01 HTTP/1.1\r\nHost: b.test\r\n\r\n"), SILT_REFUSED_PROTOCOL},
        {SILT_LIT("GET\t/ http/1.1\nHost: b.test\n\n"), SILT_REFUSED_PROTOCOL},
        {SILT_LIT("GET\v/ HTTP/1.1\nHost: b.test\n\n"), SILT_REFUSED_PROTOCOL},
        {SILT_LIT(GET "a.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
         SILT_REFUSED_PROTOCOL},
    };
    char want[64];
    for (size_t i = 0; i < SILT_COUNT(bad); i++) {
        (void)snprintf(want, sizeof(want), "0 refused %d", bad[i].reason);
        assert_fate(bad[i].bytes, want);
    }
}

TEST(what_follows_a_request_must_be_one)
{
    char want[64];
    (void)snprintf(want, sizeof(want), "a.test,32 refused %d", SILT_REFUSED_PROTOCOL);
    assert_fate(SILT_LIT(GET "a.test\r\n\r\n\x81\x05hello"), want);
    assert_fate(SILT_LIT(GET "a.test\r\n\r\nPRI * HTTP/2.0\r\n\r\n"), want);
}

#define TURN "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

/* What may follow a request for a WebSocket when the server has said this, in pieces of any size.
 */
static enum silt_protocol_sniff_result after(silt_slice request, silt_slice said,
                                             silt_slice follows)
{
    enum silt_protocol_sniff_result r = SILT_PROTOCOL_SNIFF_REFUSE;
    for (size_t piece = 1; piece <= said.len; piece++) {
        struct silt_protocol_sniff i = {0};
        size_t n = 0;
        assert_int_equal(silt_protocol_sniff_next(&i, request, &n), SILT_PROTOCOL_SNIFF_NAMED);
        assert_int_equal(n, request.len);
        if (i.state == SILT_PROTOCOL_SNIFF_TURN) /* nothing goes before the answer is there */
            assert_int_equal(silt_protocol_sniff_next(&i, follows, &n), SILT_PROTOCOL_SNIFF_MORE);
        for (size_t at = 0; at < said.len && i.state == SILT_PROTOCOL_SNIFF_TURN; at += piece)
            silt_protocol_sniff_hear(
                &i, (silt_slice){said.data + at, at + piece < said.len ? piece : said.len - at});
        enum silt_protocol_sniff_result now = silt_protocol_sniff_next(&i, follows, &n);
        assert_true(piece == 1 || now == r);
        r = now;
    }
    return r;
}

TEST(a_connection_is_free_when_the_server_has_made_it_a_websocket)
{
    silt_slice yes = SILT_LIT("HTTP/1.1 101 Switching Protocols\r\n"), frame = SILT_LIT("\x81\x05");
    assert_int_equal(after(SILT_LIT(GET "a.test\r\n" TURN), yes, frame), SILT_PROTOCOL_SNIFF_PASS);
    assert_int_equal(after(SILT_LIT(GET "a.test\r\nconnection: keep-alive, upgrade\r\n"
                                        "UPGRADE: WebSocket\r\n\r\n"),
                           yes, frame),
                     SILT_PROTOCOL_SNIFF_PASS);
}

TEST(a_connection_that_is_no_websocket_is_read_on)
{
    static const char *const others[] = {"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 101 x\r\n\r\n",
                                         "HTTP/1.1 1012\r\n",
                                         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 x\r\n", "x"};
    silt_slice request = SILT_LIT(GET "a.test\r\n" TURN), frame = SILT_LIT("\x81\x05hello\r\n\r\n");
    for (size_t i = 0; i < SILT_COUNT(others); i++) {
        assert_int_equal(after(request, silt_slice_of(others[i]), frame),
                         SILT_PROTOCOL_SNIFF_REFUSE);
        assert_int_equal(after(request, silt_slice_of(others[i]), SILT_LIT(GET "b.test\r\n\r\n")),
                         SILT_PROTOCOL_SNIFF_NAMED);
    }
}

TEST(only_a_first_plain_request_can_become_a_websocket)
{
    static const char *const others[] = {
        GET "a.test\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n",
        GET "a.test\r\nConnection: Upgrade\r\nUpgrade: websocket, other\r\n\r\n",
        GET "a.test\r\nUpgrade: other\r\n" TURN,
        GET "a.test\r\nContent-Length: 0\r\n" TURN,
        "HEAD / HTTP/1.1\r\nHost: a.test\r\n" TURN,
        "GET / HTTP/1.0\r\nHost: a.test\r\n" TURN,
    };
    for (size_t i = 0; i < SILT_COUNT(others); i++) {
        struct silt_protocol_sniff one = {0};
        size_t n;
        assert_int_equal(silt_protocol_sniff_next(&one, silt_slice_of(others[i]), &n),
                         SILT_PROTOCOL_SNIFF_NAMED);
        assert_int_equal(one.state, SILT_PROTOCOL_SNIFF_HEAD);
    }
    assert_passes(SILT_LIT(GET "a.test\r\n\r\n" GET "b.test\r\n" TURN GET "c.test\r\n\r\n"),
                  "a.test,b.test,c.test,");
}

TEST(a_line_that_has_no_end_is_refused)
{
    static char line[12000];
    memset(line, 'x', sizeof(line));
    memcpy(line, "GET /", 5);
    char want[64];
    (void)snprintf(want, sizeof(want), "0 refused %d", SILT_REFUSED_PROTOCOL);
    assert_string_equal(fate((silt_slice){line, sizeof(line)}, 100), want);
    assert_string_equal(fate((silt_slice){line, sizeof(line)}, sizeof(line)), want);
}

TEST(other_protocols_have_no_name)
{
    assert_fate(SILT_LIT("SSH-2.0-OpenSSH_9.2\r\nmore"), "-,25");
    assert_fate(SILT_LIT("EHLO me\r\n"), "-,9");
    assert_fate(SILT_LIT("0032git-upload-pack /x.git\0host=b.test\0"), "-,39");
    assert_fate(SILT_LIT("AMQP\0\0\x09\x01"), "-,8");
    assert_fate(SILT_LIT("\x00\x00\x00\x08\x04\xd2\x16\x2f"), "-,8");
}

/* TLS */

TEST(a_hello_names_its_server)
{
    char text[1024], want[64];
    size_t len = make_hello(text, "Good.Test", HELLO_PLAIN);
    (void)snprintf(want, sizeof(want), "good.test,%zu", len);
    assert_fate((silt_slice){text, len}, want);
    char spread[8192]; /* each byte of it in a record of its own */
    size_t n = spread_hello(text, len, spread);
    (void)snprintf(want, sizeof(want), "good.test,%zu", n);
    assert_fate((silt_slice){spread, n}, want);
}

static void assert_hello_refused(const char *name, enum hello_kind kind, int reason)
{
    char text[1024], want[64];
    size_t len = make_hello(text, name, kind);
    (void)snprintf(want, sizeof(want), "0 refused %d", reason);
    assert_fate((silt_slice){text, len}, want);
}

TEST(hellos_that_hide_their_server_are_refused)
{
    assert_hello_refused("", HELLO_PLAIN, SILT_REFUSED_NAMELESS);
    assert_hello_refused("93.184.215.14", HELLO_PLAIN, SILT_REFUSED_NAMELESS);
    assert_hello_refused("a b", HELLO_PLAIN, SILT_REFUSED_NAMELESS);
    assert_hello_refused("good.test", HELLO_ECH, SILT_REFUSED_PROTOCOL);
    assert_hello_refused("good.test", HELLO_TWICE, SILT_REFUSED_PROTOCOL);
    char text[1024];
    size_t len = make_hello(text, "good.test", HELLO_PLAIN);
    text[len - 12]++; /* a length inside */
    assert_non_null(strstr(fate((silt_slice){text, len}, len), "refused"));
    assert_fate(SILT_LIT("\x80\x2e\x01\x00\x02"), "0 refused 7"); /* of SSL 2 */
}

TEST(a_giant_hello_is_refused)
{
    static char text[40000];
    memset(text, 0, sizeof(text));
    for (size_t at = 0; at + 5 + 16384 < sizeof(text); at += 5 + 16384)
        memcpy(text + at, "\x16\x03\x01\x40\x00", 5);
    memcpy(text + 5, "\x01\x00\x70\x00", 4);
    assert_non_null(strstr(fate((silt_slice){text, sizeof(text)}, 1000), "0 refused"));
}

TEST(a_second_hello_is_looked_at)
{
    char text[4096], want[128];
    size_t first = make_hello(text, "good.test", HELLO_PLAIN), len = first;
    memcpy(text + len, "\x14\x03\x03\x00\x01\x01", 6);
    len += 6;
    len += make_hello(text + len, "evil.test", HELLO_PLAIN);
    (void)snprintf(want, sizeof(want), "good.test,evil.test,%zu", len);
    assert_fate((silt_slice){text, len}, want);
    /* Also behind data that came early. */
    len = make_hello(text, "good.test", HELLO_EARLY);
    memcpy(text + len, "\x17\x03\x03\x00\x03xyz", 8);
    len += 8;
    len += make_hello(text + len, "evil.test", HELLO_PLAIN);
    (void)snprintf(want, sizeof(want), "good.test,evil.test,%zu", len);
    assert_fate((silt_slice){text, len}, want);
}

TEST(a_second_hello_is_looked_at_however_it_is_cut_and_called)
{
    char text[4096], hello[512], want[128];
    size_t first = make_hello(text, "good.test", HELLO_PLAIN);
    size_t size = make_hello(hello, "evil.test", HELLO_PLAIN);
    size_t len = first + spread_hello(hello, size, text + first);
    (void)snprintf(want, sizeof(want), "good.test,evil.test,%zu", len);
    assert_fate((silt_slice){text, len}, want);
    memcpy(text + first, hello, size);
    text[first + 10] = 4; /* a version that is only called later than it is */
    (void)snprintf(want, sizeof(want), "good.test,evil.test,%zu", first + size);
    assert_fate((silt_slice){text, first + size}, want);
    text[first + 9] = 4;
    (void)snprintf(want, sizeof(want), "good.test,%zu refused %d", first, SILT_REFUSED_PROTOCOL);
    assert_fate((silt_slice){text, first + size}, want);
    text[first + 6] = 1; /* larger than we look at */
    assert_fate((silt_slice){text, first + size}, want);
}

TEST(nothing_hides_a_second_hello)
{
    char text[4096], want[128];
    size_t first = make_hello(text, "good.test", HELLO_PLAIN);
    memcpy(text + first, "\x15\x03\x03\x00\x02\x01\x5a", 7); /* a warning: cancelled */
    size_t len = first + 7 + make_hello(text + first + 7, "evil.test", HELLO_PLAIN);
    (void)snprintf(want, sizeof(want), "good.test,evil.test,%zu", len);
    assert_fate((silt_slice){text, len}, want);
    memcpy(text + first, "\x16\x03\x03\x00\x00", 5); /* an empty record */
    len = first + 5 + make_hello(text + first + 5, "evil.test", HELLO_PLAIN);
    (void)snprintf(want, sizeof(want), "good.test,%zu refused %d", first, SILT_REFUSED_PROTOCOL);
    assert_fate((silt_slice){text, len}, want);
}

TEST(the_encrypted_end_of_an_older_handshake_passes)
{
    char text[4096], want[128];
    size_t len = make_hello(text, "good.test", HELLO_PLAIN);
    memcpy(text + len, "\x14\x03\x03\x00\x01\x01\x16\x03\x03\x00\x28\x01\x00", 13);
    memset(text + len + 13, 0xee, 38);
    len += 6 + 5 + 40;
    (void)snprintf(want, sizeof(want), "good.test,%zu", len);
    assert_fate((silt_slice){text, len}, want);
}

TEST(what_follows_the_handshake_is_free)
{
    static const char rest[] = "\x16\x03\x03\x00\x04\x10\x00\x00\x00"
                               "\x17\x03\x03\x00\x02xy" GET "evil.test\r\n\r\n";
    char text[4096], want[128];
    size_t len = make_hello(text, "good.test", HELLO_PLAIN);
    memcpy(text + len, rest, sizeof(rest) - 1);
    len += sizeof(rest) - 1;
    (void)snprintf(want, sizeof(want), "good.test,%zu", len);
    assert_fate((silt_slice){text, len}, want);
}
