/* SPDX-License-Identifier: Apache-2.0 */
/* Names of archives: cleaned, followed inside of the current directory, and removed with all that
 * is below. */
#include "fetch/entry_path.h"

#include "base/own.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#define TEST(name) static void name(void **state)

static char directory[] =
    "/tmp/silt-place-XXXXXX"; /* holds `out`, the current directory, and `secret` */
static int home = -1;
static struct silt_error e;

static void touch(const char *path)
{
    silt_auto_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
}

static int start(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof(directory), "/tmp/silt-place-XXXXXX");
    assert_non_null(mkdtemp(directory));
    assert_int_equal(chdir(directory), 0);
    touch("secret");
    assert_int_equal(mkdir("out", 0755), 0);
    assert_int_equal(chdir("out"), 0);
    assert_int_equal(mkdir("usr", 0755), 0);
    assert_int_equal(mkdir("usr/lib", 0755), 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    assert_int_equal(chdir(directory), 0);
    assert_int_equal(access("secret", F_OK), 0);
    assert_int_equal(silt_entry_path_empty("", &e), 0);
    assert_int_equal(fchdir(home), 0);
    assert_int_equal(rmdir(directory), 0);
    return 0;
}

static void assert_clean(const char *from, const char *want)
{
    char out[PATH_MAX];
    assert_null(silt_entry_path_clean(from, out));
    assert_string_equal(out, want);
}

TEST(names_lose_dots_and_doubled_slashes)
{
    (void)state;
    assert_clean("./usr//bin/./x/", "usr/bin/x");
    assert_clean("./", "");
    assert_clean(".", "");
    assert_clean("..x/...", "..x/...");
}

TEST(names_that_lead_outside_are_refused)
{
    static const char *const bad[] = {"", "/", "/etc", "..", "a/..", "../a", "a/../../b"};
    char out[PATH_MAX];
    (void)state;
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        assert_non_null(silt_entry_path_clean(bad[i], out));
}

static void assert_follows(const char *from, const char *want)
{
    char out[PATH_MAX];
    const char *wrong = silt_entry_path_follow(from, out);
    assert_true(wrong == NULL);
    assert_string_equal(out, want);
}

TEST(directories_that_are_links_are_followed_inside)
{
    (void)state;
    assert_int_equal(symlink("usr/lib", "lib"), 0);
    assert_int_equal(symlink("/usr", "abs"), 0);
    assert_int_equal(symlink("../../../../usr", "up"), 0);
    assert_int_equal(symlink("../lib", "usr/again"), 0);
    assert_int_equal(symlink("nowhere/deep", "dangling"), 0);
    assert_follows("lib/x", "usr/lib/x");
    assert_follows("abs/lib/x", "usr/lib/x");
    assert_follows("up/lib/x", "usr/lib/x");
    assert_follows("usr/again/x", "usr/lib/x");
    assert_follows("dangling/x", "nowhere/deep/x");
    assert_follows("lib", "lib"); /* the last part stays what it is */
    assert_follows("usr/lib", "usr/lib");
    assert_follows("x", "x");
}

TEST(links_without_an_end_are_refused)
{
    char out[PATH_MAX];
    (void)state;
    assert_int_equal(symlink("b", "a"), 0);
    assert_int_equal(symlink("a", "b"), 0);
    assert_non_null(silt_entry_path_follow("a/x", out));
}

TEST(what_is_removed_takes_all_below_and_no_target)
{
    (void)state;
    assert_int_equal(symlink("../secret", "usr/lib/door"), 0);
    assert_int_equal(symlink("../..", "usr/lib/up"), 0);
    touch("usr/file");
    assert_int_equal(silt_entry_path_remove("usr", &e), 0);
    assert_int_not_equal(access("usr", F_OK), 0);
    assert_int_equal(silt_entry_path_remove("usr", &e), 0);
    assert_int_equal(silt_entry_path_remove("usr/not/there", &e), 0);
}

TEST(a_tree_deeper_than_descriptors_go_is_removed)
{
    (void)state;
    int at = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 1500; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        (void)close(at);
        at = next;
    }
    (void)close(at);
    assert_int_equal(silt_entry_path_remove("d", &e), 0);
    assert_int_not_equal(access("d", F_OK), 0);
}

TEST(an_emptied_directory_stays)
{
    (void)state;
    touch("usr/lib/x");
    assert_int_equal(silt_entry_path_empty("usr", &e), 0);
    assert_int_equal(access("usr", F_OK), 0);
    assert_int_not_equal(access("usr/lib", F_OK), 0);
    touch("file");
    assert_int_equal(silt_entry_path_empty("file", &e), 0);
    assert_int_equal(access("file", F_OK), 0);
}

int main(void)
{
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
#define RUN(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        RUN(names_lose_dots_and_doubled_slashes),
        RUN(names_that_lead_outside_are_refused),
        RUN(directories_that_are_links_are_followed_inside),
        RUN(links_without_an_end_are_refused),
        RUN(what_is_removed_takes_all_below_and_no_target),
        RUN(a_tree_deeper_than_descriptors_go_is_removed),
        RUN(an_emptied_directory_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
