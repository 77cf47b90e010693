/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own.h"
#include "http/parse.h"
#include "unit/base/table.h"
#include "unit/base/unit.h"

static struct silt_http_head h;
static int wrong;

static int parse(silt_slice bytes)
{
    return silt_http_parse(&h, bytes, SILT_HTTP_REQUEST);
}
#define PARSE(text) parse(SILT_LIT(text))

static void complain(const struct table_case *c, const char *what, int number)
{
    print_message("%c %s: %s %d\n", c->verdict, c->name, what, number);
    wrong++;
}

static void check_head(void *context, const struct table_case *c)
{
    (void)context;
    int got = parse(c->bytes);
    bool right = c->verdict == 'y'   ? got > 0
                 : c->verdict == 'i' ? got == 0
                                     : got <= -400 && got > -600;
    if (!right)
        complain(c, "answered", got);
    /* What is said of the first bytes is never taken back. */
    size_t step = c->bytes.len > 2000 ? 97 : 1;
    for (size_t n = 0; n < c->bytes.len; n += step) {
        int early = parse((silt_slice){c->bytes.data, n});
        if (early != 0 && early != got)
            complain(c, "answered differently at", (int)n);
    }
}

TEST(the_table_of_heads_is_judged_strictly)
{
    wrong = 0;
    assert_in_range(table_each(HEADS, check_head, NULL), 100, 1000);
    assert_int_equal(wrong, 0);
}

TEST(a_head_is_taken_apart)
{
    int n = PARSE("POST /sandboxes/a?x=1&y HTTP/1.1\r\nHost: h:80\r\nContent-Length: 12\r\n"
                  "Expect: 100-continue\r\nX-Two:  a b \r\n\r\nbody");
    assert_int_equal(
        n, (int)strlen("POST /sandboxes/a?x=1&y HTTP/1.1\r\nHost: h:80\r\n"
                       "Content-Length: 12\r\nExpect: 100-continue\r\nX-Two:  a b \r\n\r\n"));
    assert_text(h.method, "POST");
    assert_text(h.target, "/sandboxes/a?x=1&y");
    assert_text(h.path, "/sandboxes/a");
    assert_text(h.query, "x=1&y");
    assert_text(h.host, "h:80");
    assert_int_equal(h.minor, 1);
    assert_int_equal(h.count, 4);
    assert_true(h.has_length);
    assert_int_equal(h.length, 12);
    assert_true(h.expect_continue);
    assert_false(h.close);
    assert_text(silt_http_field(&h, SILT_LIT("x-TWO")), "a b");
    assert_null(silt_http_field(&h, SILT_LIT("x-three")).data);
}

TEST(flags_follow_from_fields)
{
    (void)PARSE("GET / HTTP/1.0\r\n\r\n");
    assert_true(h.close);
    (void)PARSE("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
    assert_true(h.keep_alive);
    assert_false(h.close);
    (void)PARSE("GET / HTTP/1.0\r\nConnection: Keep-Alive, close\r\n\r\n");
    assert_true(h.close);
    (void)PARSE("GET / HTTP/1.1\r\nHost: x\r\nConnection: foo ,CLOSE\r\n\r\n");
    assert_true(h.close);
    (void)PARSE("GET / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\n\r\n");
    assert_false(h.close);
    (void)PARSE(
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nUpgrade: websocket\r\n\r\n");
    assert_true(h.chunked && h.upgrade && !h.has_length);
    (void)PARSE("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n");
    assert_false(h.expect_continue);
}

TEST(an_absolute_target_names_the_host)
{
    assert_true(PARSE("GET http://real:1/a?b HTTP/1.1\r\nHost: other\r\n\r\n") > 0);
    assert_text(h.host, "real:1");
    assert_text(h.path, "/a");
    assert_text(h.query, "b");
    assert_true(PARSE("GET http://real?q HTTP/1.1\r\nHost: other\r\n\r\n") > 0);
    assert_text(h.path, "/");
    assert_text(h.query, "q");
}

TEST(each_refusal_has_its_status)
{
    static const struct {
        const char *text;
        int status;
    } rows[] = {
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505},
        {"PRI * HTTP/2.0\r\n\r\n", 505},
        {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
        {"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n", 501},
        {"GET / HTTP/1.1\r\nHost: x\r\nExpect: the-unexpected\r\n\r\n", 417},
    };
    for (size_t i = 0; i < SILT_COUNT(rows); i++)
        assert_int_equal(parse(silt_slice_of(rows[i].text)), -rows[i].status);
    static char large[SILT_HTTP_HEAD_MAX + 10];
    memset(large, 'a', sizeof(large));
    memcpy(large, "GET /", 5);
    assert_int_equal(parse((silt_slice){large, sizeof(large)}), -414);
    memcpy(large, "GET / HTTP/1.1\r\nX: ", 19);
    assert_int_equal(parse((silt_slice){large, sizeof(large)}), -431);
    assert_int_equal(parse((silt_slice){large, SILT_HTTP_HEAD_MAX - 1}), 0);
}

TEST(responses_are_read_too)
{
    assert_true(silt_http_parse(&h, SILT_LIT("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
                                SILT_HTTP_RESPONSE)
                > 0);
    assert_int_equal(h.status, 200);
    assert_text(h.reason, "OK");
    assert_int_equal(h.length, 2);
    assert_true(silt_http_parse(&h, SILT_LIT("HTTP/1.0 404\r\n\r\n"), SILT_HTTP_RESPONSE) > 0);
    assert_true(silt_http_parse(&h, SILT_LIT("HTTP/1.1 100 \r\n\r\n"), SILT_HTTP_RESPONSE) > 0);
    static const char *const bad[] = {"HTTP/1.1 20 OK\r\n\r\n",  "HTTP/1.1  200 OK\r\n\r\n",
                                      "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 099 x\r\n\r\n",
                                      "HTTP/1.1 2000 x\r\n\r\n", "ICY 200 OK\r\n\r\n",
                                      "HTTP/1.1 200 OK\n\n"};
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        assert_int_equal(silt_http_parse(&h, silt_slice_of(bad[i]), SILT_HTTP_RESPONSE), -502);
    assert_int_equal(silt_http_parse(&h, SILT_LIT("HTTP/1.1 200 O"), SILT_HTTP_RESPONSE), 0);
}

struct dechunked {
    enum silt_http_chunk end;
    size_t len, used;
    char data[8192];
};

/* The body given in pieces of `piece` bytes. */
static void dechunk(silt_slice all, size_t piece, struct dechunked *ret)
{
    struct silt_http_chunks c = {0};
    *ret = (struct dechunked){0};
    while (ret->used < all.len && ret->end == SILT_HTTP_CHUNK_MORE) {
        size_t n = all.len - ret->used < piece ? all.len - ret->used : piece;
        silt_slice in = {all.data + ret->used, n}, data;
        while ((ret->end = silt_http_dechunk(&c, &in, &data)) == SILT_HTTP_CHUNK_DATA) {
            assert_true(data.len > 0 && ret->len + data.len <= sizeof(ret->data));
            memcpy(ret->data + ret->len, data.data, data.len);
            ret->len += data.len;
        }
        ret->used += n - in.len;
    }
}

static void check_chunked(void *context, const struct table_case *c)
{
    static struct dechunked whole, split;
    (void)context;
    dechunk(c->bytes, SIZE_MAX, &whole);
    enum silt_http_chunk want = c->verdict == 'y'   ? SILT_HTTP_CHUNK_END
                                : c->verdict == 'i' ? SILT_HTTP_CHUNK_MORE
                                                    : SILT_HTTP_CHUNK_BAD;
    if (whole.end != want)
        complain(c, "answered", whole.end);
    for (size_t piece = 1; piece < 9; piece++) {
        dechunk(c->bytes, piece, &split);
        if (split.end != whole.end || split.len != whole.len || split.used != whole.used
            || memcmp(split.data, whole.data, whole.len) != 0)
            complain(c, "differs in pieces of", (int)piece);
    }
}

TEST(the_table_of_chunked_bodies_is_judged_strictly_in_pieces_of_any_size)
{
    wrong = 0;
    assert_in_range(table_each(CHUNKED, check_chunked, NULL), 40, 1000);
    assert_int_equal(wrong, 0);
}

TEST(chunks_give_their_data_and_leave_the_rest)
{
    struct dechunked d;
    silt_slice text = SILT_LIT("3\r\nabc\r\n4\r\ndefg\r\n0\r\nTrailer: x\r\n\r\nGET /");
    dechunk(text, SIZE_MAX, &d);
    assert_slice(((silt_slice){d.data, d.len}), SILT_LIT("abcdefg"));
    assert_int_equal(text.len - d.used, 5);
}

TEST(a_connect_is_read_as_strictly_as_other_requests)
{
    const silt_slice good =
        SILT_LIT("CONNECT 127.0.0.1:3000 HTTP/1.1\r\nX-Dst-Addr: 127.0.0.1:3000\r\n\r\n");
    static const char *const bad[] = {
        "CONNECT a:1 HTTP/1.1\nA: b\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nA: b\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nContent-Length: 1\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "CONNECT  HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    };
    assert_int_equal(silt_http_parse(&h, good, SILT_HTTP_CONNECT), (int)good.len);
    assert_text(h.target, "127.0.0.1:3000");
    for (size_t n = 0; n < good.len; n++)
        assert_int_equal(silt_http_parse(&h, (silt_slice){good.data, n}, SILT_HTTP_CONNECT), 0);
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        assert_int_equal(silt_http_parse(&h, silt_slice_of(bad[i]), SILT_HTTP_CONNECT), -400);
}
