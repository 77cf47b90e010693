/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/worker/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static uid_t owner_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_uid;
}

static void make_tree(void)
{
    assert_int_equal(mkdir("d", 0755), 0);
    assert_int_equal(mkdir("d/sub", 0755), 0);
    rig_put("d/sub/f", "x");
    rig_put("outside", "x");
    assert_int_equal(symlink("../outside", "d/link"), 0);
}

TEST(chmod_changes_one_or_all_and_nothing_behind_links)
{
    struct rig *r = rig_start();
    make_tree();
    RIG_MUST(.op = SILT_WORKER_CHMOD, .path = "d", .ask = {.mode = 0700});
    assert_int_equal(mode_of("d"), 0700);
    assert_int_equal(mode_of("d/sub"), 0755);
    RIG_MUST(.op = SILT_WORKER_CHMOD, .path = "d", .flags = SILT_WORKER_RECURSIVE,
             .ask = {.mode = 01711});
    assert_int_equal(mode_of("d"), 01711);
    assert_int_equal(mode_of("d/sub"), 01711);
    assert_int_equal(mode_of("d/sub/f"), 01711);
    assert_int_equal(mode_of("outside"), 0644);
    RIG_MUST(.op = SILT_WORKER_CHMOD, .path = "d/link", .ask = {.mode = 0600});
    assert_int_equal(mode_of("outside"), 0600);
    RIG_MUST_FAIL(ENOENT, .op = SILT_WORKER_CHMOD, .path = "none", .ask = {.mode = 0600});
    rig_stop(r);
}

TEST(chown_changes_one_or_all_and_nothing_behind_links)
{
    struct rig *r = rig_start();
    if (geteuid() != 0) {
        rig_stop(r);
        skip();
    }
    make_tree();
    RIG_MUST(.op = SILT_WORKER_CHOWN, .path = "d", .flags = SILT_WORKER_RECURSIVE,
             .ask = {.uid = 5, .gid = UINT32_MAX});
    assert_int_equal(owner_of("d/sub/f"), 5);
    assert_int_equal(owner_of("d/link"), 5);
    assert_int_equal(owner_of("outside"), 0);
    RIG_MUST(.op = SILT_WORKER_CHOWN, .path = "d/link", .flags = SILT_WORKER_NOFOLLOW,
             .ask = {.uid = 6, .gid = 6});
    assert_int_equal(owner_of("d/link"), 6);
    assert_int_equal(owner_of("outside"), 0);
    RIG_MUST(.op = SILT_WORKER_CHOWN, .path = "d/link", .ask = {.uid = 7, .gid = UINT32_MAX});
    assert_int_equal(owner_of("outside"), 7);
    rig_stop(r);
}

TEST(links_are_made_and_read)
{
    struct rig *r = rig_start();
    RIG_MUST(.op = SILT_WORKER_SYMLINK, .path = "any/where", .to = "link");
    RIG_MUST_FAIL(EEXIST, .op = SILT_WORKER_SYMLINK, .path = "x", .to = "link");
    struct rig_answer a = RIG_DO(.op = SILT_WORKER_READLINK, .path = "link");
    assert_string_equal(a.bytes, "any/where");
    rig_forget(&a);
    rig_put("file", "x");
    RIG_MUST_FAIL(EINVAL, .op = SILT_WORKER_READLINK, .path = "file");
    RIG_MUST_FAIL(ENOENT, .op = SILT_WORKER_READLINK, .path = "none");
    rig_stop(r);
}

TEST(truncate_cuts_and_grows_regular_files_only)
{
    struct rig *r = rig_start();
    rig_put("f", "hello");
    assert_int_equal(mkfifo("fifo", 0644), 0);
    RIG_MUST(.op = SILT_WORKER_TRUNCATE, .path = "f", .ask = {.length = 2});
    assert_file("f", "he");
    struct rig_answer a =
        RIG_DO(.op = SILT_WORKER_TRUNCATE, .path = "f", .ask = {.length = 1 << 20});
    assert_int_equal(a.done.meta.size, 1 << 20);
    rig_forget(&a);
    RIG_MUST_FAIL(ENXIO, .op = SILT_WORKER_TRUNCATE, .path = "fifo");
    RIG_MUST_FAIL(EISDIR, .op = SILT_WORKER_TRUNCATE, .path = ".");
    RIG_MUST_FAIL(EFBIG, .op = SILT_WORKER_TRUNCATE, .path = "f", .ask = {.length = UINT64_MAX});
    rig_stop(r);
}
