/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/worker/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* " name:type" for each entry. */
static void names_of(const struct rig_answer *a, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t at = 0; at + sizeof(struct silt_worker_entry) <= a->len;) {
        struct silt_worker_entry entry;
        memcpy(&entry, a->bytes + at, sizeof(entry));
        at += sizeof(entry);
        assert_true(at + entry.name_len <= a->len);
        if (used < size)
            used += (size_t)snprintf(out + used, size - used, " %.*s:%u", (int)entry.name_len,
                                     a->bytes + at, entry.type);
        at += entry.name_len;
        at += -at & 7;
    }
}

static void assert_list(struct rig *r, const char *path, uint32_t flags, const char *want)
{
    char got[1024];
    struct rig_answer a = RIG_DO(.op = SILT_WORKER_LIST, .path = path, .flags = flags);
    if (a.failed)
        fail_msg("%s", a.error.text);
    names_of(&a, got, sizeof(got));
    assert_string_equal(got, want);
    rig_forget(&a);
}

TEST(list_tells_children_or_the_whole_tree)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("d", 0755), 0);
    assert_int_equal(mkdir("d/sub", 0755), 0);
    rig_put("d/sub/f", "x");
    assert_list(r, "d", 0, " sub:2");
    assert_list(r, "d", SILT_WORKER_RECURSIVE, " sub:2 sub/f:1");
    assert_list(r, "d/sub/", 0, " f:1");
    rig_stop(r);
}

TEST(list_leaves_hidden_names_out_but_not_what_is_below_them)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("d", 0755), 0);
    assert_int_equal(mkdir("d/.hidden", 0755), 0);
    rig_put("d/.hidden/seen", "x");
    assert_list(r, "d", 0, "");
    assert_list(r, "d", SILT_WORKER_HIDDEN, " .hidden:2");
    assert_list(r, "d", SILT_WORKER_RECURSIVE, " .hidden/seen:1");
    assert_list(r, "d", SILT_WORKER_RECURSIVE | SILT_WORKER_HIDDEN, " .hidden:2 .hidden/seen:1");
    rig_stop(r);
}

TEST(list_does_not_follow_links_below_it)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("d", 0755), 0);
    assert_int_equal(symlink("..", "d/up"), 0);
    assert_int_equal(symlink("d", "link"), 0);
    assert_list(r, "d", SILT_WORKER_RECURSIVE, " up:3");
    assert_list(r, "link", SILT_WORKER_RECURSIVE, " up:3");
    RIG_MUST_FAIL(ENOENT, .op = SILT_WORKER_LIST, .path = "none");
    rig_put("file", "x");
    RIG_MUST_FAIL(ENOTDIR, .op = SILT_WORKER_LIST, .path = "file");
    rig_stop(r);
}

TEST(list_of_many_files_is_packed_into_full_frames)
{
    struct rig *r = rig_start();
    char name[32];
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof(name), "file-%d", i);
        int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        (void)close(fd);
    }
    struct rig_answer a = RIG_DO(.op = SILT_WORKER_LIST, .path = ".");
    assert_false(a.failed);
    assert_int_equal(a.done.entries, 5000);
    assert_true(a.frames <= a.len / (SILT_FRAME_BODY_MAX - 64) + 2);
    rig_forget(&a);
    rig_stop(r);
}

/* More levels than are held open: on the way up directories are opened again and read on. */
TEST(list_of_a_deep_tree_finds_its_way_back)
{
    struct rig *r = rig_start();
    char path[SILT_WORKER_PATH_MAX] = "top";
    for (int i = 0; i < 400; i++) {
        size_t len = strlen(path);
        assert_int_equal(mkdir(path, 0755), 0);
        (void)snprintf(path + len, sizeof(path) - len, "/a");
        rig_put(path, "");
        (void)snprintf(path + len, sizeof(path) - len, "/b");
        assert_int_equal(mkdir(path, 0755), 0);
        (void)snprintf(path + len, sizeof(path) - len, "/z");
    }
    struct rig_answer a =
        RIG_DO(.op = SILT_WORKER_LIST, .path = "top", .flags = SILT_WORKER_RECURSIVE);
    if (a.failed)
        fail_msg("%s", a.error.text);
    assert_int_equal(a.done.entries, 3 * 400 - 1);
    rig_forget(&a);
    rig_stop(r);
}

TEST(list_of_paths_that_are_too_long_fails_after_what_it_told)
{
    struct rig *r = rig_start();
    int at = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(mkdirat(at, "directory", 0755), 0);
        int next = openat(at, "directory", O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = next;
    }
    (void)close(at);
    struct rig_answer a =
        RIG_DO(.op = SILT_WORKER_LIST, .path = ".", .flags = SILT_WORKER_RECURSIVE);
    assert_true(a.failed);
    assert_int_equal(a.error.sys, ENAMETOOLONG);
    assert_true(a.len > 500 * sizeof(struct silt_worker_entry));
    rig_forget(&a);
    RIG_MUST(.op = SILT_WORKER_DELETE, .path = "directory", .flags = SILT_WORKER_RECURSIVE);
    rig_stop(r);
}

TEST(a_worker_leaves_a_long_list_when_siltd_goes)
{
    struct rig *r = rig_start();
    for (int i = 0; i < 3; i++)
        rig_ask(r, &(struct rig_ask){
                       .op = SILT_WORKER_LIST, .path = "/usr", .flags = SILT_WORKER_RECURSIVE});
    rig_stop(r); /* has a deadline */
}
