/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/worker/rig.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- archives that no good tar makes ---- */

struct maker {
    char *bytes;
    size_t len, size;
};

static char *reserve(struct maker *m, size_t len)
{
    m->size = m->len + len;
    m->bytes = realloc(m->bytes, m->size);
    assert_non_null(m->bytes);
    char *at = memset(m->bytes + m->len, 0, len);
    m->len += len;
    return at;
}

/* type: '0' file, '1' hard link, '2' link, '5' directory, '3' device */
static void add(struct maker *m, char type, const char *name, const char *link, const char *content)
{
    size_t len = content != NULL ? strlen(content) : 0;
    unsigned sum = 0;
    char *h = reserve(m, 512);
    (void)snprintf(h, 100, "%s", name);
    (void)snprintf(h + 100, 8, "%07o", type == '5' ? 0755 : 0644);
    (void)snprintf(h + 108, 8, "%07o", 0);
    (void)snprintf(h + 116, 8, "%07o", 0);
    (void)snprintf(h + 124, 12, "%011o", (unsigned)len);
    (void)snprintf(h + 136, 12, "%011o", 1000000000);
    h[156] = type;
    (void)snprintf(h + 157, 100, "%s", link != NULL ? link : "");
    memcpy(h + 257, "ustar\00000", 8);
    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (uint8_t)h[i];
    (void)snprintf(h + 148, 8, "%06o", sum);
    if (len > 0)
        memcpy(reserve(m, (len + 511) / 512 * 512), content, len);
}

static void end(struct maker *m)
{
    (void)reserve(m, 1024);
}

static void upload(struct rig *r, const char *path, uint32_t flags, silt_slice bytes)
{
    rig_ask(r, &(struct rig_ask){.op = SILT_WORKER_UNTAR, .path = path, .flags = flags});
    while (bytes.len > SILT_FRAME_BODY_MAX) {
        rig_send(r, bytes.data, SILT_FRAME_BODY_MAX, false);
        bytes.data += SILT_FRAME_BODY_MAX;
        bytes.len -= SILT_FRAME_BODY_MAX;
    }
    rig_send(r, bytes.data, bytes.len, true);
}

static struct rig_answer unpack(struct rig *r, const char *path, uint32_t flags, silt_slice bytes)
{
    struct rig_answer a;
    upload(r, path, flags, bytes);
    rig_hear(r, &a);
    return a;
}

static void unpack_well(struct rig *r, const char *path, uint32_t flags, silt_slice bytes)
{
    struct rig_answer a = unpack(r, path, flags, bytes);
    if (a.failed)
        fail_msg("%s", a.error.text);
    rig_forget(&a);
}

/* ---- there and back ---- */

static void make_tree(void)
{
    static char big[200000];
    memset(big, 'b', sizeof(big) - 1);
    assert_int_equal(mkdir("from", 0755), 0);
    assert_int_equal(mkdir("from/sub", 0710), 0);
    rig_put("from/sub/f", "content");
    rig_put("from/big", big);
    assert_int_equal(symlink("/nowhere", "from/link"), 0);
    assert_int_equal(chmod("from/sub/f", 0750), 0);
}

static void there_and_back(struct rig *r, uint32_t flags)
{
    struct stat st;
    make_tree();
    struct rig_answer a = RIG_DO(.op = SILT_WORKER_TAR, .path = "from", .flags = flags);
    if (a.failed)
        fail_msg("%s", a.error.text);
    assert_true(a.len > 0);
    RIG_MUST(.op = SILT_WORKER_DELETE, .path = "from", .flags = SILT_WORKER_RECURSIVE);
    unpack_well(r, "a/to", flags | SILT_WORKER_PARENTS, (silt_slice){a.bytes, a.len});
    assert_file("a/to/sub/f", "content");
    assert_int_equal(stat("a/to/sub/f", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(stat("a/to/big", &st), 0);
    assert_int_equal(st.st_size, 199999);
    assert_true(rig_exists("a/to/link"));
    assert_int_equal(rig_count("a"), 1);
    rig_forget(&a);
}

TEST(a_directory_goes_through_tar_and_back)
{
    struct rig *r = rig_start();
    there_and_back(r, 0);
    rig_stop(r);
}

TEST(a_directory_goes_through_compressed_tar_and_back)
{
    struct rig *r = rig_start();
    if (access("/usr/bin/zstd", X_OK) < 0) {
        rig_stop(r);
        skip();
    }
    there_and_back(r, SILT_WORKER_ZSTD);
    rig_stop(r);
}

TEST(unpacking_into_a_directory_that_is_there_merges)
{
    struct rig *r = rig_start();
    struct maker m = {0};
    assert_int_equal(mkdir("to", 0700), 0);
    assert_int_equal(mkdir("to/sub", 0700), 0);
    rig_put("to/keep", "keep");
    rig_put("to/sub/old", "old");
    rig_put("to/sub/both", "old");
    rig_put("to/becomes-directory", "file");
    add(&m, '5', "./", NULL, NULL);
    add(&m, '5', "./sub/", NULL, NULL);
    add(&m, '0', "./sub/both", NULL, "new");
    add(&m, '0', "./sub/fresh", NULL, "fresh");
    add(&m, '5', "./new/", NULL, NULL);
    add(&m, '0', "./new/deep", NULL, "deep");
    add(&m, '0', "./becomes-directory/f", NULL, "x");
    end(&m);
    struct rig_answer a = unpack(r, "to", 0, (silt_slice){m.bytes, m.len});
    assert_false(a.failed);
    assert_int_equal(a.done.entries, 7);
    assert_int_equal(a.done.bytes, m.len);
    rig_forget(&a);
    assert_file("to/keep", "keep");
    assert_file("to/sub/old", "old");
    assert_file("to/sub/both", "new");
    assert_file("to/sub/fresh", "fresh");
    assert_file("to/new/deep", "deep");
    assert_file("to/becomes-directory/f", "x");
    assert_int_equal(rig_count("to"), 4);
    free(m.bytes);
    rig_stop(r);
}

TEST(a_file_in_the_place_of_a_directory_changes_nothing)
{
    struct rig *r = rig_start();
    struct maker m = {0};
    assert_int_equal(mkdir("to", 0755), 0);
    assert_int_equal(mkdir("to/z", 0755), 0);
    add(&m, '0', "a", NULL, "new");
    add(&m, '0', "z", NULL, "new");
    end(&m);
    struct rig_answer a = unpack(r, "to", 0, (silt_slice){m.bytes, m.len});
    assert_true(a.failed);
    assert_int_equal(a.error.sys, EISDIR);
    rig_forget(&a);
    assert_int_equal(rig_count("to"), 1);
    free(m.bytes);
    rig_stop(r);
}

TEST(unpacking_reaches_a_mount_inside_of_the_directory)
{
    struct rig *r = rig_start();
    struct maker m = {0};
    assert_int_equal(mkdir("to", 0755), 0);
    assert_int_equal(mkdir("to/disk", 0755), 0);
    if (mount("none", "to/disk", "tmpfs", 0, "size=1m") < 0) {
        rig_stop(r);
        skip();
    }
    add(&m, '0', "disk/f", NULL, "f");
    add(&m, '5', "disk/d/", NULL, NULL);
    add(&m, '0', "disk/d/g", NULL, "g");
    end(&m);
    unpack_well(r, "to", 0, (silt_slice){m.bytes, m.len});
    assert_file("to/disk/f", "f");
    assert_file("to/disk/d/g", "g");
    assert_int_equal(rig_count("to"), 1);
    assert_int_equal(rig_count("to/disk"), 2);
    rig_hang_up(r);
    assert_int_equal(umount("to/disk"), 0);
    free(m.bytes);
    rig_stop(r);
}

/* ---- what goes wrong ---- */

static void assert_confined(struct rig *r, struct maker *m)
{
    end(m);
    struct rig_answer a = unpack(r, "in/to", 0, (silt_slice){m->bytes, m->len});
    rig_forget(&a); /* refused or confined, both is fine */
    assert_file("outside", "old");
    assert_int_equal(rig_count("."), 2);
    assert_false(rig_exists("/tmp/silt-worker-escaped"));
    RIG_MUST(.op = SILT_WORKER_DELETE, .path = "in", .flags = SILT_WORKER_RECURSIVE);
    assert_int_equal(mkdir("in", 0755), 0);
    free(m->bytes);
    *m = (struct maker){0};
}

TEST(archives_cannot_write_outside_of_the_directory)
{
    struct rig *r = rig_start();
    struct maker m = {0};
    char outside[128];
    (void)snprintf(outside, sizeof(outside), "%s/outside", r->root);
    rig_put("outside", "old");
    assert_int_equal(mkdir("in", 0755), 0);
    add(&m, '0', "../../outside", NULL, "new");
    assert_confined(r, &m);
    add(&m, '0', outside, NULL, "new");
    assert_confined(r, &m);
    add(&m, '0', "/tmp/silt-worker-escaped", NULL, "new");
    assert_confined(r, &m);
    add(&m, '2', "link", "../..", NULL);
    add(&m, '0', "link/outside", NULL, "new");
    assert_confined(r, &m);
    add(&m, '2', "link", outside, NULL);
    add(&m, '0', "link", NULL, "new");
    assert_confined(r, &m);
    add(&m, '1', "hard", "../../outside", NULL);
    add(&m, '0', "hard", NULL, "new");
    assert_confined(r, &m);
    add(&m, '1', "hard", outside, NULL);
    add(&m, '0', "hard", NULL, "new");
    assert_confined(r, &m);
    rig_stop(r);
}

TEST(archives_that_are_broken_leave_nothing)
{
    struct rig *r = rig_start();
    struct maker m = {0};
    add(&m, '0', "a", NULL, "first");
    add(&m, '0', "b", NULL, "second");
    struct rig_answer a = unpack(r, "to", 0, (silt_slice){m.bytes, m.len - 512});
    assert_true(a.failed);
    assert_non_null(strstr(a.error.text, "EOF"));
    rig_forget(&a);
    a = unpack(r, "to", 0, SILT_LIT("this is no archive at all"));
    assert_true(a.failed);
    rig_forget(&a);
    assert_int_equal(rig_count("."), 0);
    free(m.bytes);
    rig_stop(r);
}

TEST(unpacking_that_is_cut_off_leaves_nothing)
{
    struct rig *r = rig_start();
    struct maker m = {0};
    add(&m, '0', "a", NULL, "first");
    assert_int_equal(mkdir("there", 0755), 0);
    rig_ask(r, &(struct rig_ask){.op = SILT_WORKER_UNTAR, .path = "there"});
    rig_send(r, m.bytes, m.len, false);
    rig_hang_up(r);
    assert_int_equal(rig_count("there"), 0);
    assert_int_equal(rig_count("."), 1);
    free(m.bytes);
    rig_stop(r);
}

TEST(unpacking_to_a_full_disk_says_so)
{
    struct rig *r = rig_start();
    struct maker m = {0};
    static char big[400000];
    memset(big, 'b', sizeof(big) - 1);
    assert_int_equal(mkdir("disk", 0755), 0);
    if (mount("none", "disk", "tmpfs", 0, "size=128k") < 0) {
        rig_stop(r);
        skip();
    }
    add(&m, '0', "big", NULL, big);
    end(&m);
    struct rig_answer a = unpack(r, "disk/to", 0, (silt_slice){m.bytes, m.len});
    assert_true(a.failed);
    assert_int_equal(a.error.code, SILT_NO_SPACE);
    rig_forget(&a);
    assert_int_equal(rig_count("disk"), 0);
    rig_hang_up(r);
    assert_int_equal(umount("disk"), 0);
    free(m.bytes);
    rig_stop(r);
}

TEST(packing_of_what_is_no_directory_fails)
{
    struct rig *r = rig_start();
    rig_put("file", "x");
    RIG_MUST_FAIL(ENOTDIR, .op = SILT_WORKER_TAR, .path = "file");
    RIG_MUST_FAIL(ENOENT, .op = SILT_WORKER_TAR, .path = "none");
    rig_stop(r);
}

TEST(packing_that_nobody_reads_ends_with_siltd)
{
    struct rig *r = rig_start();
    rig_ask(r, &(struct rig_ask){.op = SILT_WORKER_TAR, .path = "/usr"});
    rig_stop(r); /* has a deadline */
}
