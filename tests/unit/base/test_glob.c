/* SPDX-License-Identifier: Apache-2.0 */
#include "base/glob.h"
#include "base/own.h"
#include "unit/base/unit.h"

static bool fits(const char *pattern, const char *path)
{
    return silt_glob_matches(silt_slice_of(pattern), silt_slice_of(path), SILT_GLOB_OF_WATCH);
}

TEST(a_glob_covers_whole_components_anywhere)
{
    assert_true(fits(".git", "/workspace/.git"));
    assert_true(fits(".git", "/workspace/.git/objects/x"));
    assert_true(fits("workspace", "/workspace/a"));
    assert_true(fits("a/b", "/workspace/a/b/c"));
    assert_false(fits(".git", "/workspace/.github"));
    assert_false(fits(".git", "/workspace/x.git"));
    assert_false(fits("a/b", "/workspace/a/c/b"));
    assert_true(fits("/workspace/a", "/workspace/a/b"));
    assert_false(fits("/a", "/workspace/a"));
}

TEST(a_star_stays_in_its_component_and_two_do_not)
{
    assert_true(fits("*.ts", "/w/a.ts"));
    assert_true(fits("*.ts", "/w/.ts"));
    assert_false(fits("*.ts", "/w/a.tsx"));
    assert_true(fits("*.d", "/w/x.d/y"));
    assert_false(fits("src/*/x", "/w/src/1/2/x"));
    assert_true(fits("src/**/x", "/w/src/1/2/x"));
    assert_false(fits("src/**/x", "/w/src/x"));
    assert_true(fits("src/***x", "/w/src/1/2/yx"));
    assert_true(fits("**", "/w/anything"));
    assert_true(fits("*", "/w/anything"));
}

TEST(a_question_mark_is_one_character_of_any_width)
{
    assert_true(fits("?", "/w/a"));
    assert_true(fits("a?c", "/w/a\xc3\xa4"
                            "c"));
    assert_true(fits("a?c", "/w/a\xf0\x9f\x98\x80"
                            "c"));
    assert_false(fits("a?c", "/w/ac"));
    assert_false(fits("a??c", "/w/a\xc3\xa4"
                              "c"));
    assert_true(fits("a?c", "/w/a\xff"
                            "c"));
    assert_false(fits("a?b", "/w/a/b"));
}

TEST(everything_else_is_itself)
{
    assert_true(fits("a.b", "/w/a.b"));
    assert_false(fits("a.b", "/w/axb"));
    assert_true(fits("a+(b)|^$", "/w/a+(b)|^$"));
    assert_true(fits("\\", "/w/\\"));
    assert_false(fits("\xff", "/w/\xfe"));
    assert_true(fits("\xff", "/w/\xff"));
}

/* The rule as it is written, by trying everything. */
static bool plain(const char *g, const char *p)
{
    if (*g == 0)
        return *p == 0 || *p == '/';
    if (g[0] == '*' && g[1] == '*') {
        while (*g == '*')
            g++;
        for (;; p++)
            if (plain(g, p))
                return true;
            else if (*p == 0)
                return false;
    }
    if (*g == '*') {
        for (;; p++)
            if (plain(g + 1, p))
                return true;
            else if (*p == 0 || *p == '/')
                return false;
    }
    return *p != 0 && (*g == *p || (*g == '?' && *p != '/')) && plain(g + 1, p + 1);
}

static bool plain_anywhere(const char *g, const char *p)
{
    for (const char *at = p;; at++) {
        if ((at == p || at[-1] == '/') && plain(g, at))
            return true;
        if (*at == 0)
            return false;
    }
}

TEST(the_answer_is_that_of_trying_everything)
{
    static const char letters[] = "ab/*?*/ab";
    unsigned seed = 7;
    for (int round = 0; round < 200000; round++) {
        char pattern[8], path[10];
        size_t n = 1 + (seed >> 4) % 6, m = 1 + (seed >> 12) % 8;
        for (size_t i = 0; i < n; i++)
            pattern[i] = letters[((seed = seed * 1103515245 + 12345) >> 16) % 9];
        for (size_t i = 0; i < m; i++)
            path[i] = "ab/"[((seed = seed * 1103515245 + 12345) >> 16) % 3];
        pattern[n] = path[m] = 0;
        if (fits(pattern, path) != plain_anywhere(pattern, path))
            fail_msg("%s on %s", pattern, path);
    }
}

TEST(a_nasty_pattern_takes_no_time)
{
    char pattern[513], path[4001];
    for (size_t i = 0; i < 512; i += 2) {
        pattern[i] = '*';
        pattern[i + 1] = 'a';
    }
    pattern[512] = 0;
    memset(path, 'a', 4000);
    path[0] = '/';
    path[3999] = 'b';
    path[4000] = 0;
    assert_false(fits(pattern, path));
}

TEST(a_pattern_that_is_too_long_matches_nothing)
{
    static char pattern[SILT_GLOB_MAX + 1];
    memset(pattern, '*', sizeof(pattern));
    assert_true(silt_glob_matches((silt_slice){pattern, SILT_GLOB_MAX}, SILT_LIT("a"), 0));
    assert_false(silt_glob_matches((silt_slice){pattern, SILT_GLOB_MAX + 1}, SILT_LIT("a"), 0));
}

static bool is_found(const char *pattern, const char *path)
{
    return silt_glob_matches(silt_slice_of(pattern), silt_slice_of(path), SILT_GLOB_OF_SEARCH);
}

TEST(patterns_of_searches_match_as_said)
{
    static const struct {
        const char *pattern, *path;
        bool yes;
    } rows[] = {
        {"*.c", "a.c", true},
        {"*.c", "dir/a.c", true},
        {"*.c", "a.h", false},
        {"?.c", "ab.c", false},
        {"src/*.c", "src/a.c", true},
        {"src/*.c", "src/x/a.c", false},
        {"src/**/*.c", "src/a.c", true},
        {"src/**/*.c", "src/x/y/a.c", true},
        {"src/**/*.c", "srcx/a.c", false},
        {"**/a", "a", true},
        {"**/a", "x/y/a", true},
        {"**/a", "xa", false},
        {"**", "any/thing", true},
        {"a/**", "a/b/c", true},
        {"a/**", "b/c", false},
        {"*", "", true},
        {"", "", true},
        {"", "a", false},
        {"a*b*c", "aXbYc", true},
        {"a*b*c", "aXbY", false},
        {"**/x/**/y", "x/y", true},
        {"**/x/**/y", "a/x/b/c/y", true},
        {"**/x/**/y", "a/x/b/c/z", false},
        {"*/b", "a/b", true},
        {"*/b", "a/c/b", false},
        {"a?c/d", "a/c/d", false},
        {"**/*.test.*", "x/a.test.js", true},
        {"a**b/c", "ax/yb/c", true},
        {"src/**/", "src/a.c", true},
        {"src/**/", "a.c", false},
        {"a?c",
         "a\xc3\xa4"
         "c",
         true},
    };
    for (size_t i = 0; i < SILT_COUNT(rows); i++)
        if (is_found(rows[i].pattern, rows[i].path) != rows[i].yes)
            fail_msg("%s and %s", rows[i].pattern, rows[i].path);
}

TEST(a_search_with_many_stars_ends_soon)
{
    static char pattern[SILT_GLOB_MAX + 1], path[SILT_GLOB_MAX + 1];
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = 0;
    for (size_t i = 0; i + 1 < sizeof(pattern); i += 2)
        memcpy(pattern + i, "a*", 2);
    pattern[sizeof(pattern) - 2] = 'b';
    pattern[sizeof(pattern) - 1] = 0;
    assert_false(is_found(pattern, path));
}

static bool has_one(silt_slice globs, silt_slice name)
{
    int64_t steps = 0;
    return silt_glob_hosts_match(globs, name, &steps);
}

TEST(a_star_of_hosts_is_anything)
{
    silt_slice globs = SILT_LIT("plain.test\n*.example.com\na*b*c\n");
    assert_true(has_one(globs, SILT_LIT("plain.test")));
    assert_true(has_one(globs, SILT_LIT("x.y.example.com")));
    assert_true(has_one(globs, SILT_LIT("axxbxxbc")));
    assert_false(has_one(globs, SILT_LIT("example.com")));
    assert_false(has_one(globs, SILT_LIT("plain.tes")));
    assert_false(has_one(globs, SILT_LIT("axxb")));
    assert_false(has_one(SILT_LIT(""), SILT_LIT("a")));
    assert_true(has_one(SILT_LIT("*\n"), SILT_LIT("")));
    assert_true(has_one(SILT_LIT("a*b"), SILT_LIT("a/b")));
    assert_false(has_one(SILT_LIT("a?b"), SILT_LIT("axb")));
    assert_true(has_one(SILT_LIT("a[b]"), SILT_LIT("a[b]")));
}
