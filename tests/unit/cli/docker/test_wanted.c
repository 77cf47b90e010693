/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/wanted.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct silt_wanted begin(const char *first, const char *second)
{
    struct silt_docker_sources s = {.patterns = {silt_slice_of(first), silt_slice_of(second)},
                                    .count = 2};
    struct silt_wanted w;
    silt_wanted_begin(&w, &s, "docker/File[1]");
    return w;
}

/* 0: not at all; 1: as a directory on the way; 2: with all in it. */
static int wants(const char *first, const char *second, const char *path)
{
    struct silt_wanted w = begin(first, second), below;
    silt_slice rest = silt_slice_of(path), name;
    char text[64];
    while (silt_slice_split(&rest, '/', &name)) {
        (void)snprintf(text, sizeof(text), "%.*s", (int)name.len, name.data);
        if (!silt_wanted_enter(&w, text, &below))
            return 0;
        w = below;
    }
    return w.all ? 2 : 1;
}

TEST(only_what_a_pattern_leads_to_is_wanted)
{
    assert_int_equal(wants("a/b", "c", "a"), 1);
    assert_int_equal(wants("a/b", "c", "a/b"), 2);
    assert_int_equal(wants("a/b", "c", "a/b/x/y"), 2);
    assert_int_equal(wants("a/b", "c", "a/x"), 0);
    assert_int_equal(wants("a/b", "c", "c/x"), 2);
    assert_int_equal(wants("a/b", "c", "node_modules"), 0);
    assert_int_equal(wants("a/b", "a", "a/x"), 2);
    assert_int_equal(wants("a/b", "c", "docker"), 1);
    assert_int_equal(wants("a/b", "c", "docker/File[1]"), 2);
    assert_int_equal(wants("a/b", "c", "docker/File1"), 0);
}

TEST(a_star_matches_any_part_of_a_name)
{
    assert_int_equal(wants("package*.json", "", "package-lock.json"), 2);
    assert_int_equal(wants("package*.json", "", "package.json"), 2);
    assert_int_equal(wants("package*.json", "", "package.json5"), 0);
    assert_int_equal(wants("*a*b*", "", "xxaxxbxx"), 2);
    assert_int_equal(wants("*ab", "", "aab"), 2);
    assert_int_equal(wants("*a*b*", "", "xxbxxa"), 0);
    assert_int_equal(wants("*", "", ".hidden/x"), 2);
    assert_int_equal(wants("*/x", "", "a/x"), 2);
    assert_int_equal(wants("*/x", "", "a/y"), 0);
}

TEST(links_are_found_where_a_pattern_leads)
{
    char directory[] = "/tmp/silt-wanted-XXXXXX";
    assert_non_null(mkdtemp(directory));
    silt_auto_fd fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(fd, "a", 0700), 0);
    assert_int_equal(symlinkat("/", fd, "a/link"), 0);
    assert_int_equal(symlinkat("a", fd, "b"), 0);
    struct silt_wanted direct = begin("a/l*", "x"), inside = begin("a", "x"),
                       way = begin("b/link", "x"), none = begin("a/x", "c");
    assert_true(silt_wanted_has_links(&direct, fd));
    assert_false(silt_wanted_has_links(&inside, fd));
    assert_true(silt_wanted_has_links(&way, fd));
    assert_false(silt_wanted_has_links(&none, fd));
    assert_int_equal(unlinkat(fd, "a/link", 0) + unlinkat(fd, "a", AT_REMOVEDIR)
                         + unlinkat(fd, "b", 0) + rmdir(directory),
                     0);
}
