/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/trust.h"
#include "base/own.h"
#include "engine/storage/image.h"
#include "engine/core/remove.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static char place[64];
static const uint8_t digest[SILT_DIGEST_SIZE] = {0xab, 0xcd};
static char name[SILT_IMAGE_NAME_SIZE], mark[SILT_IMAGE_NAME_SIZE + 16];

static int open_place(void)
{
    (void)snprintf(place, sizeof(place), "/tmp/silt-unit-XXXXXX");
    assert_non_null(mkdtemp(place));
    int fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    silt_image_name(digest, name);
    (void)snprintf(mark, sizeof(mark), "%s" SILT_TRUST_SUFFIX, name);
    return fd;
}

static void close_place(int fd)
{
    struct silt_error e;
    (void)silt_remove(fd, name, &e);
    (void)silt_trust_end(fd, digest, &e);
    assert_int_equal(silt_images_empty_trash(fd, &e), 0);
    (void)close(fd);
    assert_int_equal(rmdir(place), 0);
}

static void write_mark(int images, const char *text, mode_t mode)
{
    silt_auto_fd fd = openat(images, mark, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
}

static void vouch(int images)
{
    char text[32];
    struct stat st;
    assert_int_equal(fstatat(images, name, &st, 0), 0);
    (void)snprintf(text, sizeof(text), "%llu\n", (unsigned long long)st.st_ino);
    write_mark(images, text, 0644);
}

static bool is_trusted(int images)
{
    struct silt_error e;
    silt_auto_fd image = -1;
    return silt_trust_open(images, digest, &image, &e) == 0;
}

/* Only root's word counts. */
static bool root(void)
{
    return geteuid() == 0;
}

TEST(an_image_is_trusted_when_root_has_vouched_for_its_directory)
{
    uint8_t list[4][SILT_DIGEST_SIZE];
    int images = open_place();
    assert_int_equal(mkdirat(images, name, 0755), 0);
    assert_false(is_trusted(images));
    assert_int_equal(silt_trust_list(images, list, 4), 0);
    vouch(images);
    assert_int_equal(is_trusted(images), root());
    assert_int_equal(silt_trust_list(images, list, 4), 1);
    assert_memory_equal(list[0], digest, sizeof(digest));
    close_place(images);
}

TEST(a_mark_that_others_can_write_or_that_is_no_number_is_none)
{
    static const char *const texts[] = {"", "\n", "0", "-1", "1 2", "99999999999999999999999999",
                                        "x"};
    int images = open_place();
    assert_int_equal(mkdirat(images, name, 0755), 0);
    for (size_t i = 0; i < SILT_COUNT(texts); i++) {
        write_mark(images, texts[i], 0644);
        assert_false(is_trusted(images));
    }
    vouch(images);
    assert_int_equal(fchmodat(images, mark, 0664, 0), 0);
    assert_false(is_trusted(images));
    vouch(images);
    if (root()) {
        assert_int_equal(fchownat(images, mark, 12345, 0, 0), 0);
        assert_false(is_trusted(images));
    }
    close_place(images);
}

TEST(another_tree_under_the_same_digest_is_not_trusted)
{
    struct silt_error e;
    int images = open_place();
    assert_int_equal(mkdirat(images, name, 0755), 0);
    vouch(images);
    silt_auto_fd kept =
        openat(images, name, O_PATH | O_CLOEXEC); /* its number is not given again */
    assert_true(kept >= 0);
    assert_int_equal(silt_image_forget(images, digest, &e), 0);
    assert_int_equal(faccessat(images, mark, F_OK, 0), -1);
    assert_int_equal(mkdirat(images, ".staging-1", 0755), 0);
    assert_int_equal(silt_image_commit(images, 1, digest, &e), 0);
    assert_false(is_trusted(images));
    close_place(images);
}

TEST(a_mark_without_its_tree_does_not_wait_for_the_next)
{
    struct silt_error e;
    int images = open_place();
    assert_int_equal(mkdirat(images, name, 0755), 0);
    vouch(images);
    assert_int_equal(silt_remove(images, name, &e), 0); /* by hand: its number may be given again */
    assert_int_equal(mkdirat(images, ".staging-1", 0755), 0);
    assert_int_equal(silt_image_commit(images, 1, digest, &e), 0);
    assert_int_equal(faccessat(images, mark, F_OK, 0), -1);
    assert_false(is_trusted(images));
    vouch(images);
    assert_int_equal(mkdirat(images, ".staging-1", 0755), 0);
    assert_int_equal(silt_image_commit(images, 1, digest, &e),
                     0); /* it exists: the first tree stays */
    assert_int_equal(is_trusted(images), root());
    close_place(images);
}
