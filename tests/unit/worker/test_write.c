/* SPDX-License-Identifier: Apache-2.0 */
#include "base/share.h"
#include "unit/worker/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITE_AS(name, content, more)                                                              \
    .op = SILT_WORKER_WRITE, .flags = SILT_WORKER_ONLY | (more), .path = name, .text = content
#define WRITE(name, content) WRITE_AS(name, content, 0)

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

TEST(write_makes_a_file_and_tells_about_it)
{
    struct rig *r = rig_start();
    struct rig_answer a = RIG_DO(WRITE("new", "hello"));
    assert_false(a.failed);
    assert_int_equal(a.done.bytes, 5);
    assert_int_equal(a.done.meta.size, 5);
    assert_int_equal(a.done.meta.mode, 0644);
    assert_file("new", "hello");
    assert_int_equal(rig_count("."), 1);
    rig_forget(&a);
    rig_stop(r);
}

TEST(write_keeps_mode_and_owner_of_what_was_there)
{
    struct rig *r = rig_start();
    struct stat st;
    rig_put("f", "old and longer");
    assert_int_equal(chmod("f", 0666), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown("f", 12, 34), 0);
        assert_int_equal(chmod("f", 04777), 0);
    }
    mode_t before = mode_of("f");
    RIG_MUST(WRITE("f", "new"));
    assert_file("f", "new");
    assert_int_equal(mode_of("f"), before);
    assert_int_equal(stat("f", &st), 0);
    assert_int_equal(st.st_uid, geteuid() == 0 ? 12 : geteuid());
    assert_int_equal(rig_count("."), 1);
    rig_stop(r);
}

TEST(write_gives_a_new_file_the_mode_that_was_asked)
{
    struct rig *r = rig_start();
    RIG_MUST(WRITE("secret", "x"), .ask = {.mode = 0600});
    RIG_MUST(WRITE("program", "x"), .ask = {.mode = 0777});
    assert_int_equal(mode_of("secret"), 0600);
    assert_int_equal(mode_of("program"), 0755);
    rig_stop(r);
}

TEST(write_follows_links_to_their_targets)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("dir", 0755), 0);
    rig_put("dir/target", "old");
    assert_int_equal(symlink("dir/target", "link"), 0);
    assert_int_equal(symlink("link", "chain"), 0);
    assert_int_equal(symlink("dir/fresh", "dangling"), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    RIG_MUST(WRITE("chain", "new"));
    RIG_MUST(WRITE("dangling", "made"));
    RIG_MUST_FAIL(ELOOP, WRITE("loop", "x"));
    RIG_MUST_FAIL(ELOOP, WRITE("/proc/self/fd/0", "x"));
    assert_file("dir/target", "new");
    assert_file("dir/fresh", "made");
    struct stat st;
    assert_int_equal(lstat("chain", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    rig_stop(r);
}

TEST(write_refuses_directories_fifos_and_devices)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("dir", 0755), 0);
    assert_int_equal(mkfifo("fifo", 0644), 0);
    RIG_MUST_FAIL(EISDIR, WRITE("dir", "x"));
    RIG_MUST_FAIL(EISDIR, WRITE("dir/", "x"));
    RIG_MUST_FAIL(EISDIR, WRITE_AS("none/", "x", SILT_WORKER_PARENTS));
    RIG_MUST_FAIL(EISDIR, WRITE("/", "x"));
    RIG_MUST_FAIL(EISDIR, WRITE("..", "x"));
    RIG_MUST_FAIL(ENXIO, WRITE("fifo", "x"));
    RIG_MUST_FAIL(ENXIO, WRITE("/dev/null", "x"));
    RIG_MUST_FAIL(ENOENT, WRITE("", "x"));
    rig_stop(r);
}

TEST(write_makes_missing_directories_only_when_asked)
{
    struct rig *r = rig_start();
    RIG_MUST_FAIL(ENOENT, WRITE("a/b/c", "x"));
    RIG_MUST(WRITE_AS("a/b/c", "x", SILT_WORKER_PARENTS));
    RIG_MUST(WRITE_AS("a//b/./d", "y", SILT_WORKER_PARENTS));
    RIG_MUST_FAIL(ENOTDIR, WRITE_AS("a/b/c/d", "x", SILT_WORKER_PARENTS));
    assert_file("a/b/c", "x");
    assert_file("a/b/d", "y");
    assert_int_equal(mode_of("a"), 0755);
    rig_stop(r);
}

TEST(write_of_something_new_fails_when_there_is_something)
{
    struct rig *r = rig_start();
    RIG_MUST(WRITE_AS("f", "first", SILT_WORKER_NEW));
    RIG_MUST_FAIL(EEXIST, WRITE_AS("f", "second", SILT_WORKER_NEW));
    assert_file("f", "first");
    assert_int_equal(rig_count("."), 1);
    rig_stop(r);
}

TEST(write_takes_bytes_in_pieces_and_syncs_when_asked)
{
    struct rig *r = rig_start();
    static char piece[SILT_FRAME_BODY_MAX];
    struct rig_answer a;
    memset(piece, 'x', sizeof(piece));
    rig_ask(r,
            &(struct rig_ask){
                .op = SILT_WORKER_WRITE, .flags = SILT_WORKER_SYNC, .path = "big", .text = "head"});
    for (int i = 0; i < 40; i++)
        rig_send(r, piece, sizeof(piece), false);
    rig_send(r, "tail", 4, true);
    rig_hear(r, &a);
    assert_false(a.failed);
    assert_int_equal(a.done.bytes, 8 + 40 * sizeof(piece));
    assert_int_equal(a.done.meta.size, a.done.bytes);
    rig_forget(&a);
    rig_stop(r);
}

TEST(write_takes_bytes_from_shared_memory_and_says_which_it_has_used)
{
    struct rig *r = rig_start();
    struct silt_share s = {0};
    struct silt_error e;
    struct rig_answer a;
    assert_int_equal(silt_share_open(&s, 4096, &e), 0);
    memcpy(s.bytes, "one two three", 13);
    rig_ask(r,
            &(struct rig_ask){
                .op = SILT_WORKER_WRITE, .flags = SILT_WORKER_SYNC, .path = "f", .text = "zero "});
    rig_share(r, &s);
    rig_send_span(r, 4, 4, false);
    rig_send_span(r, 0, 4, false);
    rig_send_span(r, 8, 5, true);
    rig_hear(r, &a);
    assert_false(a.failed);
    assert_int_equal(a.taken, 2);
    assert_int_equal(a.done.bytes, 18);
    assert_file("f", "zero two one three");
    rig_forget(&a);
    RIG_MUST(WRITE("g", "the next one has bytes of its own"));
    silt_share_close(&s);
    rig_stop(r);
}

TEST(write_ends_the_worker_when_a_piece_is_not_in_the_shared_memory)
{
    static const struct silt_worker_span wrong[] = {
        {0, 4097}, {4097, 0}, {4096, 1}, {1, UINT64_MAX}, {UINT64_MAX, 2}};
    for (size_t i = 0; i < SILT_COUNT(wrong); i++) {
        struct rig *r = rig_start();
        struct silt_share s = {0};
        struct silt_error e;
        assert_int_equal(silt_share_open(&s, 4096, &e), 0);
        rig_ask(r, &(struct rig_ask){.op = SILT_WORKER_WRITE, .path = "f"});
        rig_share(r, &s);
        rig_send_span(r, wrong[i].offset, wrong[i].length, true);
        assert_int_equal(waitpid(r->pid, NULL, 0), r->pid);
        r->pid = 0;
        assert_int_equal(rig_count("."), 0);
        silt_share_close(&s);
        rig_stop(r);
    }
}

TEST(write_that_is_cut_off_leaves_the_old_file_and_nothing_else)
{
    struct rig *r = rig_start();
    rig_put("f", "old");
    rig_ask(r, &(struct rig_ask){.op = SILT_WORKER_WRITE, .path = "f", .text = "new"});
    rig_send(r, "more", 4, false);
    rig_hang_up(r);
    assert_file("f", "old");
    assert_int_equal(rig_count("."), 1);
    rig_stop(r);
}

/* On a file system with nameless files, as an overlay. */
TEST(write_of_a_killed_worker_leaves_nothing)
{
    struct rig *r = rig_start();
    static char piece[SILT_FRAME_BODY_MAX];
    rig_ask(r, &(struct rig_ask){.op = SILT_WORKER_WRITE, .path = "f", .text = "new"});
    for (int i = 0; i < 20; i++) /* more than the socket holds: the first ones have been written */
        rig_send(r, piece, sizeof(piece), false);
    assert_int_equal(kill(r->pid, SIGKILL), 0);
    assert_int_equal(waitpid(r->pid, NULL, 0), r->pid);
    r->pid = 0;
    assert_int_equal(rig_count("."), 0);
    rig_stop(r);
}

TEST(write_to_a_full_disk_says_so_and_leaves_the_old_file)
{
    struct rig *r = rig_start();
    static char piece[SILT_FRAME_BODY_MAX];
    struct rig_answer a;
    assert_int_equal(mkdir("disk", 0755), 0);
    if (mount("none", "disk", "tmpfs", 0, "size=256k") < 0) {
        rig_stop(r);
        skip();
    }
    rig_put("disk/f", "old");
    rig_ask(r, &(struct rig_ask){.op = SILT_WORKER_WRITE, .path = "disk/f"});
    for (int i = 0; i < 12; i++)
        rig_send(r, piece, sizeof(piece), i == 11);
    rig_hear(r, &a);
    assert_true(a.failed);
    assert_int_equal(a.error.code, SILT_NO_SPACE);
    assert_int_equal(a.error.sys, ENOSPC);
    rig_forget(&a);
    assert_file("disk/f", "old");
    assert_int_equal(rig_count("disk"), 1);
    RIG_MUST(WRITE("disk/g", "fits"));
    rig_hang_up(r);
    assert_int_equal(umount("disk"), 0);
    rig_stop(r);
}

TEST(write_to_a_file_that_is_a_mount_writes_into_it)
{
    struct rig *r = rig_start();
    rig_put("real", "old and long");
    rig_put("mounted", "");
    if (mount("real", "mounted", NULL, MS_BIND, NULL) < 0) {
        rig_stop(r);
        skip();
    }
    RIG_MUST(WRITE("mounted", "new"));
    assert_file("real", "new");
    assert_int_equal(rig_count("."), 2);
    rig_hang_up(r);
    assert_int_equal(umount("mounted"), 0);
    rig_stop(r);
}

TEST(write_reaches_files_of_proc)
{
    struct rig *r = rig_start();
    struct rig_answer a = RIG_DO(WRITE("/proc/self/comm", "renamed"));
    if (a.failed)
        fail_msg("%s", a.error.text);
    rig_forget(&a);
    a = RIG_DO(.op = SILT_WORKER_READ, .path = "/proc/self/comm");
    assert_string_equal(a.bytes, "renamed\n");
    rig_forget(&a);
    rig_stop(r);
}

static void check_name(struct rig *r, const char *name)
{
    struct rig_answer a;
    RIG_MUST(WRITE(name, "content"));
    RIG_MUST(WRITE(name, "again"));
    assert_file(name, "again");
    a = RIG_DO(.op = SILT_WORKER_READ, .path = name);
    assert_string_equal(a.bytes, "again");
    rig_forget(&a);
    a = RIG_DO(.op = SILT_WORKER_LIST, .path = ".", .flags = SILT_WORKER_HIDDEN);
    const struct silt_worker_entry *entry = (const struct silt_worker_entry *)(void *)a.bytes;
    assert_int_equal(a.done.entries, 1);
    assert_slice(((silt_slice){a.bytes + sizeof(*entry), entry->name_len}), silt_slice_of(name));
    rig_forget(&a);
    RIG_MUST(.op = SILT_WORKER_MOVE, .path = name, .to = "plain");
    RIG_MUST(.op = SILT_WORKER_MOVE, .path = "plain", .to = name);
    RIG_MUST(.op = SILT_WORKER_DELETE, .path = name);
    assert_int_equal(rig_count("."), 0);
}

TEST(names_are_bytes_whatever_they_mean_elsewhere)
{
    struct rig *r = rig_start();
    char longest[NAME_MAX + 2];
    static const char *const names[] = {
        "a b",     "it's", "\"quoted\"", "new\nline", "tab\t", "$(touch x)",   "`id`",
        "-rf",     "--",   "*",          "?",         "~",     "h\xc3\xa9llo", "\xff\xfe",
        "a;b|c&d", "%s%n", "...",        ".hidden",   " ",     "\\",           "\x01",
        "a\rb",    "#",    "{a,b}",
    };
    for (size_t i = 0; i < SILT_COUNT(names); i++)
        check_name(r, names[i]);
    memset(longest, 'n', sizeof(longest));
    longest[NAME_MAX] = 0;
    check_name(r, longest);
    longest[NAME_MAX] = 'n';
    longest[NAME_MAX + 1] = 0;
    RIG_MUST_FAIL(ENAMETOOLONG, WRITE(longest, "x"));
    rig_stop(r);
}

TEST(paths_of_4096_bytes_are_answered)
{
    struct rig *r = rig_start();
    char path[SILT_WORKER_PATH_MAX + 1];
    memset(path, 0, sizeof(path));
    for (size_t i = 0; i < sizeof(path) - 1; i++)
        path[i] = i % 200 == 199 ? '/' : 'd';
    RIG_MUST(WRITE_AS(path, "deep", SILT_WORKER_PARENTS));
    RIG_MUST_FAIL(ENAMETOOLONG, .op = SILT_WORKER_READ, .path = path);
    path[200] = 0;
    RIG_MUST(.op = SILT_WORKER_DELETE, .path = path, .flags = SILT_WORKER_RECURSIVE);
    assert_int_equal(rig_count("."), 0);
    rig_stop(r);
}

/* ---- what others see of it ---- */

static void read_events(int inotify, char *out, size_t size)
{
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t n = read(inotify, bytes, sizeof(bytes));
    size_t used = 0;
    out[0] = 0;
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *v = (const void *)(bytes + at);
        at += (ssize_t)(sizeof(*v) + v->len);
        const char *what = (v->mask & IN_CREATE) != 0     ? "create"
                           : (v->mask & IN_MODIFY) != 0   ? "modify"
                           : (v->mask & IN_MOVED_TO) != 0 ? "to"
                                                          : "from";
        used += (size_t)snprintf(out + used, size - used, " %s:%s", what,
                                 v->name[0] == '.' ? "." : v->name);
    }
}

TEST(write_is_told_to_whoever_watches_the_directory)
{
    struct rig *r = rig_start();
    char seen[512];
    silt_auto_fd inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(inotify, ".", IN_CREATE | IN_MODIFY | IN_MOVE | IN_EXCL_UNLINK)
                >= 0);
    RIG_MUST(WRITE("f", "one"));
    read_events(inotify, seen, sizeof(seen));
    assert_string_equal(seen, " create:f modify:f");
    RIG_MUST(WRITE("f", "two"));
    read_events(inotify, seen, sizeof(seen));
    assert_string_equal(seen, " create:. from:. to:f modify:f");
    rig_stop(r);
}
