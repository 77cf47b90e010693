/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/ignore.h"
#include "unit/base/unit.h"

static bool ignores(const char *rules, const char *path)
{
    static struct silt_ignore g;
    silt_ignore_read(&g, silt_slice_of(rules));
    return silt_ignore_fits(&g, silt_slice_of(path));
}

TEST(a_rule_names_a_file_or_a_directory_with_all_in_it)
{
    assert_true(ignores("node_modules\n", "node_modules"));
    assert_true(ignores("/node_modules/\n", "node_modules/a/b.js"));
    assert_false(ignores("node_modules\n", "src/node_modules"));
    assert_false(ignores("# node_modules\n\n", "node_modules"));
    assert_false(ignores("node\n", "node_modules"));
}

TEST(stars_stop_at_slashes_and_two_do_not)
{
    assert_true(ignores("*.log", "a.log"));
    assert_false(ignores("*.log", "b/a.log"));
    assert_true(ignores("*/*.log", "b/a.log"));
    assert_true(ignores("**/*.log", "c/b/a.log"));
    assert_true(ignores("**/*.log", "a.log"));
    assert_true(ignores("a/**", "a/b/c"));
    assert_true(ignores("?[b-d]\\*", "xc*"));
    assert_false(ignores("?[^b-d]", "xc"));
    assert_false(ignores("a?b", "a/b"));
}

TEST(many_stars_take_no_time)
{
    char path[400], rule[] = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*ab";
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = 0;
    assert_false(ignores(rule, path));
    rule[sizeof(rule) - 2] = 0;
    assert_true(ignores(rule, path));
    assert_false(ignores("**/**/**/**/**/**/**/**/**/x",
                         "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a"));
    assert_true(ignores("**/**/x/**/y", "a/x/b/c/y/z"));
    assert_true(ignores("a**z", "a/b/z"));
    assert_false(ignores("a*z", "a/b/z"));
    assert_true(ignores("a*", "a"));
    assert_true(ignores("**", "a/b"));
    assert_false(ignores("a/**/", "a")); /* what is in it, not itself */
}

TEST(the_last_rule_that_fits_counts)
{
    assert_false(ignores("*\n!keep.txt\n", "keep.txt"));
    assert_true(ignores("*\n!keep.txt\n", "other.txt"));
    assert_true(ignores("*\n!keep.txt\nkeep.txt\n", "keep.txt"));
    assert_false(ignores("docs\n!docs/README.md", "docs/README.md"));
    assert_true(ignores("docs\r\n !docs/README.md", "docs/other.md"));
}
