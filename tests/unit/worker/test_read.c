/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "unit/worker/rig.h"
#include "worker/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(read_tells_meta_and_content_in_one_frame)
{
    struct rig *r = rig_start();
    rig_put("a.txt", "hello\n");
    struct rig_answer a =
        RIG_DO(.op = SILT_WORKER_READ, .path = "a.txt", .flags = SILT_WORKER_MIME);
    assert_false(a.failed);
    assert_int_equal(a.frames, 1);
    assert_int_equal(a.meta.size, 6);
    assert_int_equal(a.meta.type, SILT_TYPE_FILE);
    assert_int_equal(a.meta.mode, 0644);
    assert_string_equal(a.meta.mime, "text/plain");
    assert_string_equal(a.bytes, "hello\n");
    rig_forget(&a);
    rig_stop(r);
}

static void put_pattern(const char *path, size_t len)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    for (size_t i = 0; i < len; i++)
        (void)fputc((int)(i * 7 % 251), f);
    (void)fclose(f);
}

static void check_range(struct rig *r, size_t size, uint64_t offset, uint64_t length)
{
    struct rig_answer a =
        RIG_DO(.op = SILT_WORKER_READ, .path = "big", .ask = {.offset = offset, .length = length});
    size_t from = offset < size ? offset : size,
           len = length != 0 && length < size - from ? length : size - from;
    assert_false(a.failed);
    assert_int_equal(a.meta.size, size);
    assert_int_equal(a.len, len);
    for (size_t i = 0; i < len; i++)
        assert_int_equal((uint8_t)a.bytes[i], (from + i) * 7 % 251);
    rig_forget(&a);
}

TEST(read_gives_any_range_of_a_large_file)
{
    struct rig *r = rig_start();
    size_t first = SILT_FRAME_BODY_MAX - sizeof(struct silt_worker_meta),
           size = first + 3 * SILT_FRAME_BODY_MAX;
    put_pattern("big", size);
    const uint64_t offsets[] = {0,        1,    first - 1, first,     first + 1,
                                size - 1, size, size + 1,  UINT64_MAX};
    const uint64_t lengths[] = {
        0, 1, first - 1, first, first + 1, first + SILT_FRAME_BODY_MAX, size, UINT64_MAX};
    for (size_t i = 0; i < SILT_COUNT(offsets); i++)
        for (size_t k = 0; k < SILT_COUNT(lengths); k++)
            check_range(r, size, offsets[i], lengths[k]);
    rig_stop(r);
}

TEST(read_of_an_empty_file_is_one_frame_without_content)
{
    struct rig *r = rig_start();
    rig_put("empty", "");
    struct rig_answer a =
        RIG_DO(.op = SILT_WORKER_READ, .path = "empty", .flags = SILT_WORKER_MIME);
    assert_int_equal(a.frames, 1);
    assert_int_equal(a.len, 0);
    assert_string_equal(a.meta.mime, "inode/x-empty");
    rig_forget(&a);
    rig_stop(r);
}

TEST(read_refuses_what_is_not_a_regular_file_and_never_waits)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("dir", 0755), 0);
    assert_int_equal(mkfifo("fifo", 0644), 0);
    assert_int_equal(symlink("fifo", "link"), 0);
    RIG_MUST_FAIL(EISDIR, .op = SILT_WORKER_READ, .path = "dir");
    RIG_MUST_FAIL(ENXIO, .op = SILT_WORKER_READ, .path = "fifo");
    RIG_MUST_FAIL(ENXIO, .op = SILT_WORKER_READ, .path = "link");
    RIG_MUST_FAIL(ENXIO, .op = SILT_WORKER_READ, .path = "/dev/zero");
    RIG_MUST_FAIL(ENOENT, .op = SILT_WORKER_READ, .path = "none");
    RIG_MUST_FAIL(ENOENT, .op = SILT_WORKER_READ, .path = "");
    RIG_MUST_FAIL(ELOOP, .op = SILT_WORKER_READ, .path = "/proc/self/fd/0");
    RIG_MUST_FAIL(ELOOP, .op = SILT_WORKER_READ, .path = "/proc/self/root/etc/passwd");
    RIG_MUST_FAIL(EIO, .op = SILT_WORKER_READ, .path = "/proc/self/mem");
    rig_stop(r);
}

TEST(read_of_a_file_of_proc_tells_the_size_it_has)
{
    struct rig *r = rig_start();
    struct rig_answer a = RIG_DO(.op = SILT_WORKER_READ, .path = "/proc/self/status");
    assert_false(a.failed);
    assert_true(a.len > 100);
    assert_int_equal(a.meta.size, a.len);
    rig_forget(&a);
    a = RIG_DO(.op = SILT_WORKER_READ, .path = "/proc/self/status",
               .ask = {.offset = 5, .length = 3});
    assert_int_equal(a.len, 3);
    rig_forget(&a);
    a = RIG_DO(.op = SILT_WORKER_READ, .path = "/sys/kernel/mm/transparent_hugepage/enabled");
    if (!a.failed)
        assert_int_equal(a.meta.size, a.len);
    rig_forget(&a);
    rig_stop(r);
}

TEST(read_of_a_file_without_an_end_is_cut_off)
{
    struct rig *r = rig_start();
    RIG_MUST_FAIL(EFBIG, .op = SILT_WORKER_READ, .path = "/proc/self/pagemap");
    rig_stop(r);
}

TEST(read_begins_at_the_directory_of_a_process)
{
    struct rig *r = rig_start();
    rig_put("here", "x");
    struct rig_answer a =
        RIG_DO(.op = SILT_WORKER_READ, .path = "here", .cwd = "/", .ask = {.cwd_pid = getpid()});
    assert_string_equal(a.bytes, "x");
    rig_forget(&a);
    RIG_MUST_FAIL(ENOENT, .op = SILT_WORKER_READ, .path = "here", .cwd = "/");
    RIG_MUST(.op = SILT_WORKER_READ, .path = "here",
             .ask = {.cwd_pid = INT32_MAX}); /* no such process: at cwd */
    RIG_MUST_FAIL(ELOOP, .op = SILT_WORKER_READ, .path = "here", .cwd = "/proc/self/cwd");
    rig_stop(r);
}

TEST(stat_tells_links_and_types)
{
    struct rig *r = rig_start();
    rig_put("data", "#!/bin/sh\n");
    assert_int_equal(symlink("data", "link"), 0);
    struct rig_answer a = RIG_DO(.op = SILT_WORKER_STAT, .path = "link", .flags = SILT_WORKER_MIME);
    assert_int_equal(a.meta.type, SILT_TYPE_FILE);
    assert_string_equal(a.meta.mime, "text/x-shellscript");
    rig_forget(&a);
    a = RIG_DO(.op = SILT_WORKER_STAT, .path = "link",
               .flags = SILT_WORKER_NOFOLLOW | SILT_WORKER_MIME);
    assert_int_equal(a.meta.type, SILT_TYPE_LINK);
    assert_string_equal(a.meta.mime, "inode/symlink");
    rig_forget(&a);
    a = RIG_DO(.op = SILT_WORKER_STAT, .path = "/dev/null", .flags = SILT_WORKER_MIME);
    assert_int_equal(a.meta.type, SILT_TYPE_OTHER);
    assert_string_equal(a.meta.mime, "inode/chardevice");
    rig_forget(&a);
    RIG_MUST_FAIL(ENOENT, .op = SILT_WORKER_STAT, .path = "none");
    rig_stop(r);
}

TEST(stat_of_what_cannot_be_read_has_no_type)
{
    struct rig *r = rig_start();
    RIG_MUST_FAIL(EIO, .op = SILT_WORKER_READ, .path = "/proc/self/mem");
    struct rig_answer a =
        RIG_DO(.op = SILT_WORKER_STAT, .path = "/proc/self/mem", .flags = SILT_WORKER_MIME);
    assert_false(a.failed);
    assert_int_equal(a.meta.type, SILT_TYPE_FILE);
    assert_string_equal(a.meta.mime, "");
    rig_forget(&a);
    rig_stop(r);
}

TEST(times_that_do_not_fit_are_the_nearest_that_do)
{
    struct silt_worker_meta m;
    struct stat st = {.st_mtim = {.tv_sec = INT64_MAX}, .st_ctim = {.tv_sec = INT64_MIN}};
    silt_meta_of(&st, &m);
    assert_true(m.mtime_ns == INT64_MAX);
    assert_true(m.ctime_ns == INT64_MIN);
    assert_int_equal(silt_ns_of((struct timespec){.tv_sec = -1, .tv_nsec = 999999999}), -1);
}

TEST(what_takes_long_gives_signs_of_life)
{
    int pair[2];
    struct silt_frame f;
    struct silt_error e;
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, pair, &e), 0);
    struct silt_task *t =
        calloc(1, sizeof(*t)); /* it has said nothing since the machine was started */
    assert_non_null(t);
    t->sock = pair[0];
    assert_true(silt_task_is_wanted(t));
    assert_true(silt_task_is_wanted(t));
    assert_int_equal(recv(pair[1], &f, sizeof(f), MSG_DONTWAIT), sizeof(f));
    assert_int_equal(f.type, SILT_WORKER_SAY_DATA);
    assert_int_equal(f.flags, 0);
    assert_int_equal(recv(pair[1], &f, sizeof(f), MSG_DONTWAIT), -1); /* one is enough for now */
    t->told = true;
    t->said_ms = 0;
    assert_true(silt_task_is_wanted(t));
    assert_int_equal(recv(pair[1], &f, sizeof(f), MSG_DONTWAIT),
                     -1); /* behind the last frame comes nothing */
    silt_close_fd(&pair[1]);
    assert_false(silt_task_is_wanted(t));
    t->finishing = true;
    assert_true(silt_task_is_wanted(t));
    silt_close_fd(&pair[0]);
    free(t);
}
