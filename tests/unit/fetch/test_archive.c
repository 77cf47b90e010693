/* SPDX-License-Identifier: Apache-2.0 */
/* The unpacker by itself, without the cage around it: what a hostile tar may not do to the
 * directories beside. */
#include "fetch/archive.h"

#include "base/fd.h"
#include "tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/xattr.h>

#include <cmocka.h>

#define TEST(name) static void name(void **state)

static struct silt_buf tar;
static struct silt_fetch_order order;
static struct silt_fetch_result result;
static struct silt_buf said;
static struct silt_error e;
static char directory[] =
    "/tmp/silt-archive-XXXXXX"; /* holds `out`, the current directory, and `secret` */
static int home = -1;

static int start(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof(directory), "/tmp/silt-archive-XXXXXX");
    assert_non_null(mkdtemp(directory));
    assert_int_equal(chdir(directory), 0);
    silt_auto_fd secret = open("secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(secret, "mine", 4), 4);
    assert_int_equal(mkdir("out", 0755), 0);
    assert_int_equal(chdir("out"), 0);
    silt_buf_init(&tar, TAR_MAX);
    silt_buf_init(&said, TAR_MAX);
    memset(&result, 0, sizeof(result));
    memset(&e, 0, sizeof(e));
    return 0;
}

static void remove_tree(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        (void)unlinkat(parent, name, 0);
        return;
    }
    DIR *dir = fdopendir(fd);
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir));)
        if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
            remove_tree(fd, d->d_name);
    (void)closedir(dir);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

static int stop(void **state)
{
    (void)state;
    silt_buf_fini(&tar);
    silt_buf_fini(&said);
    assert_int_equal(fchdir(home), 0);
    remove_tree(AT_FDCWD, directory);
    return 0;
}

static int unpack_with(struct silt_archive_limits limits)
{
    assert_false(tar.broken);
    silt_auto_fd fd = memfd_create("tar", MFD_CLOEXEC);
    assert_int_equal(silt_fd_write_all(fd, silt_buf_slice(&tar), &e), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return silt_archive_unpack(fd, &order, &limits, &result, &said, &e);
}

static int unpack(void)
{
    return unpack_with(silt_archive_defaults);
}

static void assert_refused(enum silt_code code, const char *part)
{
    assert_int_equal(unpack(), -1);
    assert_int_equal(e.code, code);
    if (!strstr(e.text, part))
        fail_msg("%s", e.text);
}

static void assert_content(const char *path, const char *want)
{
    char got[64] = {0};
    silt_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, got, sizeof(got) - 1) >= 0);
    assert_string_equal(got, want);
}

static void assert_untouched(void)
{
    struct stat st;
    assert_content("../secret", "mine");
    assert_int_equal(stat("../secret", &st), 0);
    assert_int_equal(st.st_nlink, 1);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_not_equal(access("../evil", F_OK), 0);
}

TEST(unpacks_files_links_directories_and_fifos)
{
    struct stat st;
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "./", .type = '5', .mode = 0700});
    tar_add(&tar, (struct tar_entry){.name = "./usr/bin/", .type = '5', .mode = 0755});
    tar_add(&tar, (struct tar_entry){.name = "./usr/bin/su",
                                     .type = '0',
                                     .data = "hello",
                                     .mode = 04755,
                                     .uid = 0,
                                     .gid = 42});
    tar_add(&tar, (struct tar_entry){.name = "usr/bin/alias", .type = '1', .link = "./usr/bin/su"});
    tar_add(&tar, (struct tar_entry){.name = "bin", .type = '2', .link = "usr/bin"});
    tar_add(&tar, (struct tar_entry){.name = "away", .type = '2', .link = "/etc/passwd"});
    tar_add(&tar, (struct tar_entry){.name = "queue", .type = '6'});
    tar_end(&tar);
    if (unpack() < 0)
        fail_msg("%s", e.text);
    assert_int_equal(result.entries, 8); /* and `usr`, which none names */
    assert_int_equal(result.bytes, 5);
    assert_content("bin/su", "hello");
    assert_int_equal(lstat("usr/bin/su", &st), 0);
    assert_int_equal(st.st_nlink, 2);
    assert_int_equal(st.st_mode & 07777, 04755);
    assert_int_equal(st.st_gid, 42);
    assert_int_equal(st.st_mtime, 1000000000);
    assert_int_equal(lstat("queue", &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(lstat("away", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

TEST(digest_covers_every_byte_of_the_stream)
{
    uint8_t want[SILT_DIGEST_SIZE];
    unsigned size;
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "x"});
    tar_end(&tar);
    silt_buf_add(&tar, SILT_LIT("after the end"));
    for (int i = 0; i < 20; i++)
        tar_end(&tar);
    assert_int_equal(EVP_Digest(tar.data, tar.len, want, &size, EVP_sha256(), NULL), 1);
    assert_int_equal(unpack(), 0);
    assert_memory_equal(result.digest, want, sizeof(want));
}

TEST(path_that_climbs_is_refused)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "a/../../evil", .type = '0', .data = "x"});
    tar_end(&tar);
    assert_refused(SILT_INVALID, "climbs");
    assert_untouched();
}

TEST(dots_at_the_end_of_a_path_are_refused)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "..", .type = '5', .mode = 0777});
    tar_end(&tar);
    assert_refused(SILT_INVALID, "climbs");
    assert_untouched();
}

TEST(absolute_path_is_refused)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "/tmp/silt-archive-evil", .type = '0', .data = "x"});
    tar_end(&tar);
    assert_refused(SILT_INVALID, "absolute");
    assert_int_not_equal(access("/tmp/silt-archive-evil", F_OK), 0);
}

TEST(writing_through_a_symbolic_link_is_refused)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "door", .type = '2', .link = ".."});
    tar_add(&tar, (struct tar_entry){.name = "door/evil", .type = '0', .data = "x"});
    tar_end(&tar);
    assert_refused(SILT_INVALID, "entry door/evil");
    assert_untouched();
}

TEST(directory_over_a_symbolic_link_does_not_reach_its_target)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "door", .type = '2', .link = ".."});
    tar_add(&tar, (struct tar_entry){.name = "door", .type = '5', .mode = 0755});
    tar_add(&tar, (struct tar_entry){.name = "door/evil", .type = '0', .data = "x"});
    tar_end(&tar);
    (void)unpack(); /* refused, or the link became a directory of its own */
    assert_untouched();
}

TEST(file_over_a_symbolic_link_replaces_the_link)
{
    struct stat st;
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "door", .type = '2', .link = "../secret"});
    tar_add(&tar, (struct tar_entry){.name = "door", .type = '0', .data = "new", .mode = 0777});
    tar_end(&tar);
    assert_int_equal(unpack(), 0);
    assert_int_equal(lstat("door", &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_untouched();
}

TEST(hard_link_to_a_climbing_path_is_refused)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "twin", .type = '1', .link = "../secret"});
    tar_end(&tar);
    assert_refused(SILT_INVALID, "outside");
    assert_untouched();
}

TEST(hard_link_to_an_absolute_path_is_refused)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "twin", .type = '1', .link = "/etc/passwd"});
    tar_end(&tar);
    assert_refused(SILT_INVALID, "outside");
}

TEST(hard_link_through_a_symbolic_link_is_refused)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "door", .type = '2', .link = ".."});
    tar_add(&tar, (struct tar_entry){.name = "twin", .type = '1', .link = "door/secret"});
    tar_add(&tar, (struct tar_entry){.name = "twin", .type = '0', .data = "evil"});
    tar_end(&tar);
    assert_refused(SILT_INVALID, "entry twin");
    assert_untouched();
}

TEST(mode_of_a_hard_link_to_a_symbolic_link_stays_inside)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "door", .type = '2', .link = "../secret"});
    tar_add(&tar, (struct tar_entry){
                      .name = "twin", .type = '1', .link = "door", .mode = 0777, .uid = 7});
    tar_end(&tar);
    (void)unpack();
    assert_untouched();
}

TEST(device_nodes_are_left_out)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "null", .type = '3'});
    tar_add(&tar, (struct tar_entry){.name = "disk", .type = '4'});
    tar_add(&tar, (struct tar_entry){.name = "file", .type = '0', .data = "x"});
    tar_end(&tar);
    assert_int_equal(unpack(), 0);
    assert_int_not_equal(access("null", F_OK), 0);
    assert_int_not_equal(access("disk", F_OK), 0);
    assert_content("file", "x");
}

TEST(second_entry_of_a_name_wins)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "first and longer"});
    tar_add(&tar, (struct tar_entry){.name = "b", .type = '1', .link = "a"});
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "second"});
    tar_end(&tar);
    assert_int_equal(unpack(), 0);
    assert_content("a", "second");
    assert_content("b", "first and longer");
}

TEST(owner_outside_the_range_is_refused)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .uid = 65536});
    tar_end(&tar);
    assert_refused(SILT_INVALID, "65535");
}

TEST(names_of_many_bytes_are_refused_or_kept_whole)
{
    static char text[6000];
    (void)state;
    memset(text, 'n', sizeof(text) - 1);
    for (size_t i = 200; i < sizeof(text) - 1; i += 200)
        text[i] = '/';
    tar_add(&tar, (struct tar_entry){.name = "././@LongLink", .type = 'L', .data = text});
    tar_add(&tar, (struct tar_entry){.name = "short", .type = '0', .data = "x"});
    tar_end(&tar);
    assert_refused(SILT_INVALID, "too long");
}

TEST(names_in_other_scripts_are_kept)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){
                      .name = "pax", .type = 'x', .data = "15 path=\xc3\xa4/\xe6\xb0\xb4\n"});
    tar_add(&tar, (struct tar_entry){.name = "plain", .type = '0', .data = "x"});
    tar_add(&tar, (struct tar_entry){.name = "\xff\xfe", .type = '0', .data = "y"});
    tar_end(&tar);
    if (unpack() < 0)
        fail_msg("%s", e.text);
    assert_content("\xc3\xa4/\xe6\xb0\xb4", "x");
    assert_content("\xff\xfe", "y");
}

TEST(extended_attributes_are_left_out)
{
    char value[64];
    (void)state;
    tar_add(&tar, (struct tar_entry){
                      .name = "pax", .type = 'x', .data = "30 SCHILY.xattr.user.note=abc\n"});
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "x"});
    tar_end(&tar);
    assert_int_equal(unpack(), 0);
    assert_int_equal(lgetxattr("a", "user.note", value, sizeof(value)), -1);
}

TEST(archive_cut_inside_a_file_is_refused)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "x"});
    tar_header(&tar, &(struct tar_entry){.name = "b", .type = '0', .size = 100000});
    silt_buf_add(&tar, SILT_LIT("only this"));
    assert_refused(SILT_INVALID, "");
}

TEST(archive_cut_between_two_files_is_refused)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "x"});
    assert_refused(SILT_INVALID, "cut off");
}

TEST(stream_that_is_no_tar_is_refused)
{
    (void)state;
    silt_buf_add(&tar, SILT_LIT("#!/bin/sh\necho hello\n"));
    assert_refused(SILT_INVALID, "read archive");
}

TEST(empty_stream_is_refused)
{
    (void)state;
    assert_refused(SILT_INVALID, "read archive");
}

TEST(too_many_bytes_are_refused_before_they_are_written)
{
    struct silt_archive_limits limits = silt_archive_defaults;
    (void)state;
    limits.bytes = 1000;
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "x"});
    tar_header(&tar, &(struct tar_entry){.name = "bomb", .type = '0', .size = 8000000000ULL});
    assert_int_equal(unpack_with(limits), -1);
    assert_int_equal(e.code, SILT_LIMIT);
    assert_int_not_equal(access("bomb", F_OK), 0);
}

TEST(too_many_entries_are_refused)
{
    struct silt_archive_limits limits = silt_archive_defaults;
    (void)state;
    limits.entries = 10;
    for (int i = 0; i < 12; i++)
        tar_add(&tar, (struct tar_entry){.name = "a", .type = '0'});
    tar_end(&tar);
    assert_int_equal(unpack_with(limits), -1);
    assert_int_equal(e.code, SILT_LIMIT);
}

TEST(directories_that_only_a_path_names_are_counted)
{
    static char text[2 * 1000 + 2];
    struct silt_archive_limits limits = silt_archive_defaults;
    (void)state;
    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "d/", 2);
    text[sizeof(text) - 2] = 'f';
    tar_add(&tar, (struct tar_entry){.name = "././@LongLink", .type = 'L', .data = text});
    tar_add(&tar, (struct tar_entry){.name = "short", .type = '0', .data = "x"});
    tar_end(&tar);
    limits.entries = 1000;
    assert_int_equal(unpack_with(limits), -1);
    assert_int_equal(e.code, SILT_LIMIT);
    assert_int_not_equal(access("d", F_OK), 0);

    result.entries = 0;
    limits.entries = 1001;
    assert_int_equal(unpack_with(limits), 0);
    assert_int_equal(result.entries, 1001);
}

TEST(what_would_fill_the_disk_is_refused)
{
    struct silt_archive_limits limits = silt_archive_defaults;
    (void)state;
    limits.spare = UINT64_MAX;
    limits.spare_part = 1;
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "x"});
    tar_end(&tar);
    assert_int_equal(unpack_with(limits), -1);
    assert_int_equal(e.code, SILT_NO_SPACE);
    assert_int_not_equal(access("a", F_OK), 0);
}

TEST(what_would_fill_the_disk_is_not_spooled)
{
    struct silt_archive_limits limits = silt_archive_defaults;
    (void)state;
    limits.spare = UINT64_MAX;
    limits.spare_part = 1;
    tar_add(&tar, (struct tar_entry){.name = "oci-layout", .type = '0', .data = "{}"});
    tar_end(&tar);
    assert_int_equal(unpack_with(limits), -1);
    assert_int_equal(e.code, SILT_NO_SPACE);
}

TEST(endless_stream_is_cut)
{
    struct silt_archive_limits limits = silt_archive_defaults;
    (void)state;
    limits.stream = 1024 * 1024;
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "x"});
    for (int i = 0; i < 3000; i++)
        tar_end(&tar);
    assert_int_equal(unpack_with(limits), -1);
    assert_int_not_equal(access("../evil", F_OK), 0);
}

/* Packs the tar by libarchive's filter of that number. */
static void pack(int filter)
{
    struct silt_buf plain = tar;
    size_t used = 0, room = plain.len + 4096;
    silt_buf_init(&tar, TAR_MAX);
    char *to = silt_buf_room(&tar, room);
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    assert_int_equal(archive_write_add_filter(a, filter), ARCHIVE_OK);
    assert_int_equal(archive_write_set_format_raw(a), ARCHIVE_OK);
    assert_int_equal(archive_write_open_memory(a, to, room, &used), ARCHIVE_OK);
    archive_entry_set_filetype(entry, AE_IFREG);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, plain.data, plain.len), (la_ssize_t)plain.len);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_entry_free(entry);
    (void)archive_write_free(a);
    silt_buf_fini(&plain);
    tar.len = used;
}

static void assert_packed_works(int filter)
{
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "packed"});
    tar_end(&tar);
    pack(filter);
    if (unpack() < 0)
        fail_msg("%s", e.text);
    assert_content("a", "packed");
}

static void assert_cut_is_refused(int filter)
{
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "packed"});
    tar_add(&tar, (struct tar_entry){.name = "b", .type = '0', .data = "packed too"});
    tar_end(&tar);
    pack(filter);
    tar.len /= 2;
    assert_refused(SILT_INVALID, "");
}

TEST(gzip_is_unpacked)
{
    (void)state;
    assert_packed_works(ARCHIVE_FILTER_GZIP);
}

TEST(zstd_is_unpacked)
{
    (void)state;
    assert_packed_works(ARCHIVE_FILTER_ZSTD);
}

TEST(what_is_packed_twice_is_refused)
{
    (void)state;
    tar_add(&tar, (struct tar_entry){.name = "a", .type = '0', .data = "x"});
    tar_end(&tar);
    pack(ARCHIVE_FILTER_GZIP);
    pack(ARCHIVE_FILTER_ZSTD);
    assert_refused(SILT_INVALID, "packed more than once");
}

TEST(xz_is_unpacked)
{
    (void)state;
    assert_packed_works(ARCHIVE_FILTER_XZ);
}

TEST(what_unpacks_to_far_more_than_its_size_is_refused)
{
    struct silt_archive_limits limits = silt_archive_defaults;
    static const char zeros[TAR_BLOCK];
    const unsigned blocks = 8000;
    (void)state;
    limits.free = 1024 * 1024;
    tar_header(&tar, &(struct tar_entry){.name = "bomb", .type = '0', .size = blocks * TAR_BLOCK});
    for (unsigned i = 0; i < blocks; i++)
        silt_buf_add(&tar, (silt_slice){zeros, sizeof(zeros)});
    tar_end(&tar);
    pack(ARCHIVE_FILTER_GZIP);
    assert_int_equal(unpack_with(limits), -1);
    assert_int_equal(e.code, SILT_LIMIT);
    assert_non_null(strstr(e.text, "far more"));
}

TEST(gzip_cut_off_is_refused)
{
    (void)state;
    assert_cut_is_refused(ARCHIVE_FILTER_GZIP);
}

TEST(zstd_cut_off_is_refused)
{
    (void)state;
    assert_cut_is_refused(ARCHIVE_FILTER_ZSTD);
}

int main(void)
{
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
#define RUN(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        RUN(unpacks_files_links_directories_and_fifos),
        RUN(digest_covers_every_byte_of_the_stream),
        RUN(path_that_climbs_is_refused),
        RUN(dots_at_the_end_of_a_path_are_refused),
        RUN(absolute_path_is_refused),
        RUN(writing_through_a_symbolic_link_is_refused),
        RUN(directory_over_a_symbolic_link_does_not_reach_its_target),
        RUN(file_over_a_symbolic_link_replaces_the_link),
        RUN(hard_link_to_a_climbing_path_is_refused),
        RUN(hard_link_to_an_absolute_path_is_refused),
        RUN(hard_link_through_a_symbolic_link_is_refused),
        RUN(mode_of_a_hard_link_to_a_symbolic_link_stays_inside),
        RUN(device_nodes_are_left_out),
        RUN(second_entry_of_a_name_wins),
        RUN(owner_outside_the_range_is_refused),
        RUN(names_of_many_bytes_are_refused_or_kept_whole),
        RUN(names_in_other_scripts_are_kept),
        RUN(extended_attributes_are_left_out),
        RUN(archive_cut_inside_a_file_is_refused),
        RUN(archive_cut_between_two_files_is_refused),
        RUN(stream_that_is_no_tar_is_refused),
        RUN(empty_stream_is_refused),
        RUN(too_many_bytes_are_refused_before_they_are_written),
        RUN(too_many_entries_are_refused),
        RUN(directories_that_only_a_path_names_are_counted),
        RUN(what_would_fill_the_disk_is_refused),
        RUN(what_would_fill_the_disk_is_not_spooled),
        RUN(endless_stream_is_cut),
        RUN(gzip_is_unpacked),
        RUN(zstd_is_unpacked),
        RUN(what_is_packed_twice_is_refused),
        RUN(xz_is_unpacked),
        RUN(what_unpacks_to_far_more_than_its_size_is_refused),
        RUN(gzip_cut_off_is_refused),
        RUN(zstd_cut_off_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
