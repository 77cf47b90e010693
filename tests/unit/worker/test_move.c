/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/worker/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MOVE(from, dest) .op = SILT_WORKER_MOVE, .path = from, .to = dest

TEST(move_renames_overwrites_and_moves_into_directories)
{
    struct rig *r = rig_start();
    rig_put("a", "a");
    rig_put("b", "b");
    assert_int_equal(mkdir("dir", 0755), 0);
    assert_int_equal(symlink("dir", "link"), 0);
    RIG_MUST(MOVE("a", "b"));
    assert_file("b", "a");
    RIG_MUST(MOVE("b", "dir"));
    assert_file("dir/b", "a");
    RIG_MUST(MOVE("dir/b", "link/c"));
    RIG_MUST(MOVE("dir/c", "d"));
    RIG_MUST(MOVE("d", "link"));
    assert_file("dir/d", "a");
    RIG_MUST(MOVE("dir", "renamed/"));
    assert_file("renamed/d", "a");
    RIG_MUST_FAIL(ENOENT, MOVE("none", "x"));
    RIG_MUST_FAIL(ENOENT, MOVE("renamed/d", "none/x"));
    RIG_MUST_FAIL(ENOTDIR, MOVE("renamed/d", "none/"));
    RIG_MUST_FAIL(EINVAL, MOVE("renamed", "renamed/sub"));
    RIG_MUST_FAIL(EINVAL, MOVE("renamed/d", "./renamed/d"));
    assert_file("renamed/d", "a");
    rig_stop(r);
}

TEST(move_of_one_hard_link_onto_the_other_leaves_one)
{
    struct rig *r = rig_start();
    rig_put("a", "a");
    assert_int_equal(link("a", "b"), 0);
    RIG_MUST(MOVE("a", "b"));
    assert_false(rig_exists("a"));
    assert_file("b", "a");
    rig_stop(r);
}

static void make_tree(void)
{
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000001, .tv_nsec = 5}};
    assert_int_equal(mkdir("tree", 0700), 0);
    assert_int_equal(mkdir("tree/sub", 0750), 0);
    rig_put("tree/sub/f", "content");
    assert_int_equal(chmod("tree/sub/f", 0640), 0);
    (void)setxattr("tree/sub/f", "user.note", "yes", 3, 0);
    assert_int_equal(symlink("nowhere", "tree/link"), 0);
    assert_int_equal(mkfifo("tree/fifo", 0600), 0);
    assert_int_equal(chown("tree/sub/f", 7, 8), 0);
    assert_int_equal(utimensat(AT_FDCWD, "tree/sub/f", times, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, "tree/sub", times, 0), 0);
}

static void check_tree(const char *at)
{
    char path[128], target[32];
    struct stat st;
    (void)snprintf(path, sizeof(path), "%s/sub/f", at);
    assert_file(path, "content");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(st.st_uid, 7);
    assert_int_equal(st.st_gid, 8);
    assert_int_equal(st.st_mtim.tv_sec, 1000000001);
    assert_int_equal(st.st_mtim.tv_nsec, 5);
    (void)snprintf(path, sizeof(path), "%s/sub", at);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mtim.tv_sec, 1000000001);
    assert_int_equal(st.st_mode & 07777, 0750);
    (void)snprintf(path, sizeof(path), "%s/link", at);
    assert_int_equal(readlink(path, target, sizeof(target)), 7);
    (void)snprintf(path, sizeof(path), "%s/fifo", at);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
}

TEST(move_to_another_file_system_keeps_everything)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("disk", 0755), 0);
    if (mount("none", "disk", "tmpfs", 0, "size=4m") < 0) {
        rig_stop(r);
        skip();
    }
    make_tree();
    RIG_MUST(MOVE("tree", "disk"));
    check_tree("disk/tree");
    assert_false(rig_exists("tree"));
    assert_int_equal(rig_count("disk"), 1);
    RIG_MUST(MOVE("disk/tree", "back"));
    check_tree("back");
    rig_put("file", "new");
    rig_put("disk/file", "old");
    RIG_MUST(MOVE("file", "disk/file"));
    assert_file("disk/file", "new");
    assert_int_equal(mkdir("disk/file2", 0755), 0);
    rig_put("file2", "x");
    rig_put("disk/file2/file2", "old");
    RIG_MUST(MOVE("file2", "disk/file2"));
    assert_file("disk/file2/file2", "x");
    rig_hang_up(r);
    assert_int_equal(umount("disk"), 0);
    rig_stop(r);
}

TEST(move_to_another_file_system_keeps_holes)
{
    struct rig *r = rig_start();
    struct stat st;
    assert_int_equal(mkdir("disk", 0755), 0);
    if (mount("none", "disk", "tmpfs", 0, "size=1m") < 0) {
        rig_stop(r);
        skip();
    }
    rig_put("sparse", "head");
    int fd = open("sparse", O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "middle", 6, 64 << 20), 6);
    assert_int_equal(ftruncate(fd, 1 << 30), 0);
    (void)close(fd);
    RIG_MUST(MOVE("sparse", "disk"));
    assert_int_equal(stat("disk/sparse", &st), 0);
    assert_int_equal(st.st_size, 1 << 30);
    char got[7] = "";
    fd = open("disk/sparse", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, got, 4, 0), 4);
    assert_string_equal(got, "head");
    assert_int_equal(pread(fd, got, 6, 64 << 20), 6);
    assert_string_equal(got, "middle");
    (void)close(fd);
    rig_hang_up(r);
    assert_int_equal(umount("disk"), 0);
    rig_stop(r);
}

TEST(move_to_a_full_file_system_changes_nothing)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("disk", 0755), 0);
    if (mount("none", "disk", "tmpfs", 0, "size=64k") < 0) {
        rig_stop(r);
        skip();
    }
    assert_int_equal(mkdir("tree", 0755), 0);
    rig_put("tree/a", "a");
    rig_put("tree/big", "");
    assert_int_equal(truncate("tree/big", 1 << 20), 0);
    int fd = open("tree/big", O_WRONLY | O_CLOEXEC);
    static char block[1 << 20];
    memset(block, 1, sizeof(block));
    assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
    (void)close(fd);
    RIG_MUST_FAIL(ENOSPC, MOVE("tree", "disk/there"));
    assert_int_equal(rig_count("disk"), 0);
    assert_int_equal(rig_count("tree"), 2);
    rig_hang_up(r);
    assert_int_equal(umount("disk"), 0);
    rig_stop(r);
}

TEST(mkdir_makes_one_or_all)
{
    struct rig *r = rig_start();
    struct stat st;
    rig_put("file", "x");
    RIG_MUST(.op = SILT_WORKER_MKDIR, .path = "one");
    RIG_MUST_FAIL(EEXIST, .op = SILT_WORKER_MKDIR, .path = "one");
    RIG_MUST_FAIL(EEXIST, .op = SILT_WORKER_MKDIR, .path = "/");
    RIG_MUST_FAIL(ENOENT, .op = SILT_WORKER_MKDIR, .path = "a/b");
    RIG_MUST_FAIL(ENOENT, .op = SILT_WORKER_MKDIR, .path = "");
    RIG_MUST(.op = SILT_WORKER_MKDIR, .path = "a/b/c/", .flags = SILT_WORKER_RECURSIVE);
    RIG_MUST(.op = SILT_WORKER_MKDIR, .path = "a/b/../b/c", .flags = SILT_WORKER_RECURSIVE);
    RIG_MUST(.op = SILT_WORKER_MKDIR, .path = "/", .flags = SILT_WORKER_RECURSIVE);
    RIG_MUST_FAIL(EEXIST, .op = SILT_WORKER_MKDIR, .path = "file", .flags = SILT_WORKER_RECURSIVE);
    RIG_MUST_FAIL(ELOOP, .op = SILT_WORKER_MKDIR, .path = "/proc/self/cwd/x",
                  .flags = SILT_WORKER_RECURSIVE);
    RIG_MUST(.op = SILT_WORKER_MKDIR, .path = "private", .ask = {.mode = 0700});
    assert_int_equal(stat("private", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat("a/b/c", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    rig_stop(r);
}

TEST(a_directory_has_one_path_whatever_links_lead_to_it)
{
    char cwd[PATH_MAX], wanted[PATH_MAX + 16];
    struct rig *r = rig_start();
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    (void)snprintf(wanted, sizeof(wanted), "%s/real/new/deep", cwd);
    RIG_MUST(.op = SILT_WORKER_MKDIR, .path = "real");
    RIG_MUST(.op = SILT_WORKER_SYMLINK, .path = "real", .to = "link");
    RIG_MUST(.op = SILT_WORKER_SYMLINK, .path = "./link/.", .to = "second");
    for (int i = 0; i < 2; i++) { /* it is made, and it is there */
        struct rig_answer a = RIG_DO(.op = SILT_WORKER_DIRECTORY, .path = "second/new/../new/deep");
        assert_string_equal(a.bytes, wanted);
        rig_forget(&a);
    }
    rig_put("file", "x");
    RIG_MUST_FAIL(EEXIST, .op = SILT_WORKER_DIRECTORY, .path = "file");
    RIG_MUST_FAIL(EEXIST, .op = SILT_WORKER_DIRECTORY, .path = "file/below");
    RIG_MUST_FAIL(ELOOP, .op = SILT_WORKER_DIRECTORY, .path = "/proc/self/cwd/x");
    rig_stop(r);
}
