/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/cgroup.h"
#include "base/fd.h"
#include "engine/core/remove.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Version 2 in a tree that no kernel fills; tests/engine does more with a real one. */
static char root[64];

static const char *path_of(const char *path)
{
    static char full[256];
    (void)snprintf(full, sizeof(full), "%s/%s", root, path);
    return full;
}

static void put(const char *path, const char *text)
{
    char full[256];
    struct silt_error e;
    (void)snprintf(full, sizeof(full), "%s/%s", root, path);
    silt_auto_fd fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(silt_fd_write_all(fd, silt_slice_of(text), &e), 0);
}

static void assert_file(const char *path, const char *wanted)
{
    char full[256];
    struct silt_error e;
    silt_auto_free char *text = NULL;
    size_t len;
    (void)snprintf(full, sizeof(full), "%s/%s", root, path);
    assert_int_equal(silt_fd_read_file(AT_FDCWD, full, 4096, &text, &len, &e), 0);
    assert_string_equal(text, wanted);
}

static void open_groups(struct silt_cgroups *c)
{
    struct silt_error e;
    (void)snprintf(root, sizeof(root), "/tmp/silt-unit-XXXXXX");
    assert_non_null(mkdtemp(root));
    put("cgroup.controllers", "cpu memory pids");
    struct silt_cgroups_config config = {.root = root,
                                         .instance = "unit",
                                         .ids_base = 1 << 28,
                                         .ids_count = 1 << 24,
                                         .ids_images = 1 << 27};
    assert_int_equal(silt_cgroups_open(c, &config, &e), 0);
    assert_int_equal(c->version, 2);
}

static void close_groups(void)
{
    struct silt_error e;
    silt_auto_fd tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(silt_remove(tmp, root + strlen("/tmp/"), &e), 0);
}

TEST(limits_are_written_and_changed)
{
    struct silt_cgroups c;
    struct silt_error e;
    struct silt_priv_limits l = {
        .memory_bytes = 64 << 20, .disk_bytes = 1, .cpu_milli = 62, .pids = 9};
    open_groups(&c);
    assert_int_equal(silt_cgroup_make(&c, 3, &l, &e), 0);
    assert_file("unit/s3/guest/memory.max", "67108864");
    assert_file("unit/s3/guest/cpu.max", "6200 100000");
    assert_file("unit/s3/guest/cpu.max.burst", "6200");
    assert_file("unit/s3/guest/pids.max", "9");
    close_groups();
}

TEST(a_silt_init_has_a_limit_of_memory)
{
    struct silt_cgroups c;
    struct silt_error e;
    struct silt_priv_limits l = {
        .memory_bytes = 64 << 20, .disk_bytes = 1, .cpu_milli = 62, .pids = 9};
    open_groups(&c);
    assert_int_equal(silt_cgroup_make(&c, 3, &l, &e), 0);
    assert_file("unit/s3/agent/memory.max", "33554432");
    assert_file("unit/s3/agent/memory.swap.max", "0");
    close_groups();
}

TEST(what_unpacks_images_has_a_limit_of_memory)
{
    struct silt_cgroups c;
    open_groups(&c);
    assert_file("unit/fetch/memory.max", "2147483648");
    assert_file("unit/fetch/memory.swap.max", "0");
    assert_file("unit/fetch/pids.max", "64");
    close_groups();
}

TEST(each_staging_directory_has_a_group_of_its_own)
{
    struct silt_cgroups c;
    struct silt_cgroup_entry in;
    struct silt_error e;
    open_groups(&c);
    assert_int_equal(silt_cgroup_fetch(&c, 3, &in, &e), 0);
    assert_true(in.into >= 0);
    assert_int_equal(faccessat(AT_FDCWD, path_of("unit/fetch/h3"), F_OK, 0), 0);
    silt_cgroup_entry_close(&in);
    put("unit/fetch/pids.current", "64\n");
    assert_int_equal(silt_cgroup_fetch(&c, 4, &in, &e), -1);
    assert_int_equal(e.code, SILT_LIMIT);
    close_groups();
}

TEST(a_group_is_removed_when_it_is_empty_and_not_before)
{
    struct silt_cgroups c;
    struct silt_cgroup_entry in;
    struct silt_error e;
    open_groups(&c);
    assert_int_equal(silt_cgroup_fetch_end(&c, 3, &e), 0); /* there is none */
    assert_int_equal(silt_cgroup_fetch(&c, 3, &in, &e), 0);
    silt_cgroup_entry_close(&in);
    assert_int_equal(silt_cgroup_fetch_end(&c, 3, &e),
                     -1); /* in this tree: the file that kills is in its way */
    assert_file("unit/fetch/h3/cgroup.kill", "1");
    close_groups();
}

TEST(statistics_are_read_from_the_guests_group)
{
    struct silt_cgroups c;
    struct silt_error e;
    struct silt_priv_stat s = {0};
    struct silt_priv_limits l = {
        .memory_bytes = 64 << 20, .disk_bytes = 1, .cpu_milli = 1000, .pids = 9};
    open_groups(&c);
    assert_int_equal(silt_cgroup_make(&c, 3, &l, &e), 0);
    put("unit/s3/guest/memory.current", "1000\n");
    put("unit/s3/guest/memory.peak", "2000\n");
    put("unit/s3/guest/pids.current", "4\n");
    put("unit/s3/guest/cpu.stat", "usage_usec 123456\nuser_usec 1\nsystem_usec 2\n");
    put("unit/s3/guest/memory.events", "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\n");
    assert_int_equal(silt_cgroup_stat(&c, 3, &s, &e), 0);
    assert_int_equal(s.memory_bytes, 1000);
    assert_int_equal(s.memory_peak_bytes, 2000);
    assert_int_equal(s.pids, 4);
    assert_int_equal(s.cpu_us, 123456);
    assert_int_equal(s.oom_kills, 2);
    close_groups();
}

TEST(handles_take_the_first_free_numbers)
{
    struct silt_cgroups c;
    struct silt_error e;
    struct silt_priv_limits l = {
        .memory_bytes = 64 << 20, .disk_bytes = 1, .cpu_milli = 1000, .pids = 9};
    int fds[6], nfds = 0;
    char path[128];
    struct stat st;
    open_groups(&c);
    assert_int_equal(silt_cgroup_make(&c, 3, &l, &e), 0);
    (void)snprintf(path, sizeof(path), "%s/unit/s3/guest/h0", root);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(silt_cgroup_handles(&c, 3, 2, fds, &nfds, &e), 0);
    assert_int_equal(nfds, 6);
    (void)snprintf(path, sizeof(path), "%s/unit/s3/guest/h2", root);
    assert_int_equal(stat(path, &st), 0);
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&fds[i]);
    close_groups();
}

TEST(a_machine_without_cgroups_is_told_so)
{
    struct silt_cgroups c;
    struct silt_error e;
    struct silt_cgroups_config config = {.root = "/nonexistent", .instance = "unit"};
    assert_int_equal(silt_cgroups_open(&c, &config, &e), -1);
    assert_int_equal(e.code, SILT_NOT_FOUND);
}
