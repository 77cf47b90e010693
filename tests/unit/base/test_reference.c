/* SPDX-License-Identifier: Apache-2.0 */
#include "base/reference.h"
#include "unit.h"

#include <string.h>

static const char *read_as(const char *text)
{
    static char ret[SILT_REFERENCE_SIZE];
    struct silt_error e;
    return silt_reference_read(silt_slice_of(text), ret, &e) == 0 ? ret : "refused";
}

TEST(a_reference_has_one_spelling)
{
    static const char *const pairs[][2] = {
        {"base", "base"},
        {"base:latest", "base"},
        {"base:1.2", "base:1.2"},
        {"docker.io/library/node:24-slim", "node:24-slim"},
        {"index.docker.io/node", "node"},
        {"docker.io/ghcr.io/node", "refused"}, /* it would become ghcr.io's */
        {"docker.io/docker.io/node", "refused"},
        {"docker.io/index.docker.io/node", "refused"},
        {"library/library/node", "library/library/node"},
        {"docker.io/cloudflare/sandbox:0.12.10", "cloudflare/sandbox:0.12.10"},
        {"library/debian", "debian"},
        {"localhost:5000/a/b", "localhost:5000/a/b"},
        {"localhost:5000/a/b:Tag_1", "localhost:5000/a/b:Tag_1"},
        {"ghcr.io/x/y.z__w-q:latest", "ghcr.io/x/y.z__w-q"},
        {"library", "library"},
        {"1st", "1st"},
        {"old-name-", "old-name-"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        assert_string_equal(read_as(pairs[i][0]), pairs[i][1]);
}

TEST(what_is_no_reference_is_refused)
{
    static const char *const bad[] = {
        "",           "/",       "a/",        "/a",     "a//b",   "A",    "a:",      ":tag",
        "a:b:c",      "a/b:c/d", "a:-x",      "../etc", "a/../b", ".a",   "a b",     "a@b",
        "a/b:5000/c", "h:0/x",   "h:70000/x", "h:x/y",  "-",      "a\nb", "a/b:\x80"};
    char longest[400];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_string_equal(read_as(bad[i]), "refused");
    memset(longest, 'a', sizeof(longest));
    longest[255] = 0;
    assert_string_equal(read_as(longest), longest);
    longest[255] = 'a';
    longest[256] = 0;
    assert_string_equal(read_as(longest), "refused");
}

TEST(the_tag_of_a_reference_is_found)
{
    assert_int_equal(silt_reference_tag(SILT_LIT("a:b")), 2);
    assert_int_equal(silt_reference_tag(SILT_LIT("h:5/a")), 5);
    assert_int_equal(silt_reference_tag(SILT_LIT("h:5/a:t")), 6);
}
