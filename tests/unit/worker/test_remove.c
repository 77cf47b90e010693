/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/worker/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DELETE(name) .op = SILT_WORKER_DELETE, .path = name
#define DELETE_ALL(name) .op = SILT_WORKER_DELETE, .path = name, .flags = SILT_WORKER_RECURSIVE

TEST(delete_takes_files_links_and_fifos_but_no_directories)
{
    struct rig *r = rig_start();
    rig_put("file", "x");
    assert_int_equal(mkdir("dir", 0755), 0);
    assert_int_equal(mkfifo("fifo", 0644), 0);
    assert_int_equal(symlink("dir", "link"), 0);
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    RIG_MUST(DELETE("file"));
    RIG_MUST(DELETE("fifo"));
    RIG_MUST(DELETE("link"));
    RIG_MUST_FAIL(EISDIR, DELETE("dir"));
    RIG_MUST_FAIL(ENOENT, DELETE("file"));
    RIG_MUST_FAIL(ENOENT, DELETE("dangling"));
    RIG_MUST(DELETE("dangling"), .flags = SILT_WORKER_NOFOLLOW);
    RIG_MUST_FAIL(EISDIR, DELETE_ALL("/"));
    assert_true(rig_exists("dir"));
    assert_int_equal(rig_count("."), 1);
    rig_stop(r);
}

TEST(delete_of_a_tree_follows_no_link)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("outside", 0755), 0);
    rig_put("outside/keep", "x");
    assert_int_equal(mkdir("tree", 0755), 0);
    assert_int_equal(mkdir("tree/sub", 0), 0);
    assert_int_equal(symlink("../outside", "tree/link"), 0);
    assert_int_equal(symlink("..", "tree/up"), 0);
    rig_put("tree/file", "x");
    struct rig_answer a = RIG_DO(DELETE_ALL("tree/"));
    assert_false(a.failed);
    assert_int_equal(a.done.entries, 5);
    rig_forget(&a);
    assert_false(rig_exists("tree"));
    assert_file("outside/keep", "x");
    assert_int_equal(symlink("outside", "link"), 0);
    RIG_MUST(DELETE_ALL("link"));
    assert_file("outside/keep", "x");
    rig_stop(r);
}

TEST(delete_of_a_tree_of_any_depth_works)
{
    struct rig *r = rig_start();
    int at = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 5000; i++) { /* far deeper than a path can say */
        assert_int_equal(mkdirat(at, "directory", 0755), 0);
        int next = openat(at, "directory", O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        (void)close(at);
        at = next;
    }
    (void)close(at);
    struct rig_answer a = RIG_DO(DELETE_ALL("directory"));
    assert_false(a.failed);
    assert_int_equal(a.done.entries, 5000);
    rig_forget(&a);
    assert_int_equal(rig_count("."), 0);
    rig_stop(r);
}
