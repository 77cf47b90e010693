/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own.h"
#include "unit/base/unit.h"
#include "proxy/preview/host.h"

static struct silt_http_head head;
static struct silt_host host;
static const struct silt_host_rule below = {.domain = {"localhost:7459", 14}};
static const struct silt_host_rule paths = {.domain = {"localhost:7459", 14}, .paths = true};

static int read_request(const struct silt_host_rule *rule, const char *target, const char *name,
                        const char *more)
{
    static char text[4096];
    (void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, name, more);
    int len = silt_http_parse(&head, silt_slice_of(text), SILT_HTTP_REQUEST);
    return len < 0 ? -len : silt_host_read(rule, &head, &host);
}

TEST(a_label_below_the_domain_is_the_name)
{
    assert_int_equal(read_request(&below, "/a?b", "8000-abc-token.localhost:7459", ""), 0);
    assert_int_equal(host.form, SILT_PREVIEW_HOST);
    assert_string_equal(host.name, "8000-abc-token");
    assert_string_equal(host.proof, "");
    assert_text(host.path, "/a");
}

TEST(every_other_host_is_refused)
{
    static const char *const hosts[] = {
        "8000-ABC-token.localhost:7459",
        "8000-abc-token.localhost.:7459",
        "8000-abc-token.localhost",
        "8000-abc-token.localhost:74590",
        "8000-abc-token.localhost:80",
        "8000-abc-token.evil.tld:7459",
        "a.8000-abc-token.localhost:7459",
        ".localhost:7459",
        "localhost:7459.localhost:7459",
        "8000_abc.localhost:7459",
        "xlocalhost:7459",
        "8000-abc-token.LOCALHOST:7459",
        "127.0.0.1:7459",
        "[::1]:7459",
        "8000-abc%2dtoken.localhost:7459",
        ("b\xc3\xbc"
         "cher.localhost:7459"),
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.localhost:7459"};
    for (size_t i = 0; i < SILT_COUNT(hosts); i++)
        if (read_request(&below, "/", hosts[i], "") != 400)
            fail_msg("%s", hosts[i]);
    assert_int_equal(read_request(&below, "/", "a.localhost:7459\r\nHost: b.localhost:7459", ""),
                     400);
    assert_int_equal(read_request(&below, "http://a.localhost:7459/", "a.localhost:7459", ""), 400);
    assert_int_equal(read_request(&below, "/", "localhost:7459", ""),
                     404); /* the domain itself has no preview */
}

TEST(a_label_has_63_bytes_at_most)
{
    assert_int_equal(
        read_request(
            &below, "/",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.localhost:7459", ""),
        0);
    assert_int_equal(strlen(host.name), 63);
}

TEST(paths_count_only_where_they_are_allowed)
{
    assert_int_equal(read_request(&below, "/preview/abc/8000/token/x", "127.0.0.1:7459", ""), 400);
    assert_int_equal(read_request(&paths, "/preview/abc/8000/token/x/y?z", "127.0.0.1:7459", ""),
                     0);
    assert_int_equal(host.form, SILT_PREVIEW_PATH);
    assert_string_equal(host.name, "abc/8000/token");
    assert_text(host.path, "/x/y");
    assert_text(host.prefix, "/preview/abc/8000/token");
    assert_false(host.unfinished);
}

TEST(a_path_is_taken_apart_in_one_way)
{
    assert_int_equal(read_request(&paths, "/preview/a%2eb/8000/token", "x", ""), 0);
    assert_string_equal(host.name, "a.b/8000/token");
    assert_true(host.unfinished);
    static const char *const odd[] = {"/preview",
                                      "/preview/",
                                      "/preview/a/8000",
                                      "/preview//8000/token/",
                                      "/preview/a//t/",
                                      "/preview/a/8000//",
                                      "/preview/a%2fb/8/t/",
                                      "/preview/a%00/8000/t/",
                                      "/preview/a%/8/t",
                                      "/preview/a%4/8/t",
                                      "/preview/a%zz/8000/t/",
                                      "/other/a/8000/t/",
                                      "/"};
    for (size_t i = 0; i < SILT_COUNT(odd); i++)
        if (read_request(&paths, odd[i], "x", "") != 404)
            fail_msg("%s", odd[i]);
}

TEST(a_path_as_long_as_can_be_is_no_overflow)
{
    char target[1024] = "/preview/";
    memset(target + 9, 'a', 700);
    memcpy(target + 709, "/8000/token/", 13);
    assert_int_equal(read_request(&paths, target, "x", ""), 404);
    for (size_t n = 300; n < 330; n++) {
        memset(target + 9, 'a', n);
        memcpy(target + 9 + n, "/8/t/", 6);
        (void)read_request(&paths, target, "x", "");
    }
}

TEST(a_proof_is_in_the_url_or_in_our_cookie)
{
    assert_int_equal(read_request(&below, "/?a=1&silt-proof=x.Y_z~-9&b", "a.localhost:7459",
                                  "Cookie: silt-proof=other\r\n"),
                     0);
    assert_string_equal(host.proof, "x.Y_z~-9");
    assert_true(host.signed_url);
    assert_int_equal(read_request(&below, "/", "a.localhost:7459",
                                  "Cookie: a=silt-proof=no; silt-proof=mine\r\n"),
                     0);
    assert_string_equal(host.proof, "mine");
    assert_false(host.signed_url);
    assert_int_equal(
        read_request(&below, "/?xsilt-proof=a", "a.localhost:7459", "Cookie: silt-proof=\"q\"\r\n"),
        0);
    assert_string_equal(host.proof, "");
}
