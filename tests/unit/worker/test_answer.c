/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/answer.h"
#include "unit/base/unit.h"

static struct silt_answer got;

static int read_head(const char *text)
{
    return silt_answer_read(silt_slice_of(text), &got);
}

TEST(a_head_is_whole_at_its_empty_line)
{
    assert_int_equal(read_head(""), 0);
    assert_int_equal(read_head("HTTP/1.1 200 OK"), 0);
    assert_int_equal(read_head("HTTP/1.1 200 OK\r\n"), 0);
    assert_int_equal(read_head("HTTP/1.1 200 OK\r\nA: b\r\n"), 0);
    assert_int_equal(read_head("HTTP/1.1 204 No\r\nA: b\r\n\r\nbody"), 1);
    assert_int_equal(got.status, 204);
    assert_int_equal(read_head("HTTP/1.0 404\n\n"), 1);
    assert_int_equal(got.status, 404);
}

TEST(interim_answers_are_passed_over)
{
    assert_int_equal(read_head("HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 500 Oh\r\n\r\n"), 1);
    assert_int_equal(got.status, 500);
    assert_int_equal(read_head("HTTP/1.1 100 Continue\r\n\r\n"), 0);
}

TEST(what_is_not_http_is_told)
{
    assert_int_equal(read_head("SSH-2.0-OpenSSH\r\n"), -1);
    assert_int_equal(read_head("HTTP/1.1 2x0 OK\r\n"), -1);
    assert_int_equal(read_head("HTTP/1.1 2000 OK\r\n"), -1);
    assert_int_equal(read_head("\r\n"), -1);
}

TEST(a_target_is_one_word_that_begins_with_a_slash)
{
    char t[SILT_TARGET_SIZE];
    assert_true(silt_target_of(SILT_LIT(""), t));
    assert_string_equal(t, "/");
    assert_true(silt_target_of(SILT_LIT("health?a=b#c"), t));
    assert_string_equal(t, "/health?a=b");
    assert_true(silt_target_of(SILT_LIT("/a b\r\nX: y\xc3"), t));
    assert_string_equal(t, "/a%20b%0D%0AX:%20y%C3");
}

static void follow(const char *from, const char *location, const char *want)
{
    char target[SILT_TARGET_SIZE], head[512];
    (void)snprintf(head, sizeof(head), "HTTP/1.1 302 Found\r\nlocation:  %s\r\n\r\n", location);
    (void)snprintf(target, sizeof(target), "%s", from);
    assert_int_equal(read_head(head), 1);
    bool goes = silt_answer_redirect(&got, 8080, target);
    assert_int_equal(goes, want != NULL);
    if (want != NULL)
        assert_string_equal(target, want);
}

TEST(redirects_are_followed_on_the_same_port_only)
{
    follow("/a/b?c", "/x", "/x");
    follow("/a/b?c", "x/y", "/a/x/y");
    follow("/a/b?c/d", "?q", "/a/b?q");
    follow("/", "http://localhost:8080/ok", "/ok");
    follow("/", "HTTP://LOCALHOST:8080", "/");
    follow("/", "http://127.0.0.1:8080?x", "/?x");
    follow("/", "http://[::1]:8080/", "/");
    follow("/", "http://localhost:80801/", NULL);
    follow("/", "http://localhost/", NULL);
    follow("/", "https://localhost:8080/", NULL);
    follow("/", "http://example.com:8080/", NULL);
    follow("/", "//localhost:8080/", NULL);
    follow("/", "mailto:a", NULL);
    follow("/", "", NULL);
}
