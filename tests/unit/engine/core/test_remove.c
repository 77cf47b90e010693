/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/remove.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <sys/stat.h>

static char place[64];

static int open_place(void)
{
    (void)snprintf(place, sizeof(place), "/tmp/silt-unit-XXXXXX");
    assert_non_null(mkdtemp(place));
    int fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void close_place(int fd)
{
    (void)close(fd);
    assert_int_equal(rmdir(place), 0); /* nothing is left in it */
}

TEST(remove_is_fine_when_there_is_nothing)
{
    struct silt_error e;
    int dir = open_place();
    assert_int_equal(silt_remove(dir, "none", &e), 0);
    close_place(dir);
}

TEST(remove_deletes_files_and_links_without_following_them)
{
    struct silt_error e;
    int dir = open_place();
    assert_int_equal(mkdirat(dir, "tree", 0755), 0);
    assert_int_equal(mkdirat(dir, "kept", 0755), 0);
    silt_auto_fd file = openat(dir, "kept/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(symlinkat("../kept", dir, "tree/link"), 0);
    assert_int_equal(linkat(dir, "kept/file", dir, "tree/hard", 0), 0);
    assert_int_equal(silt_remove(dir, "tree", &e), 0);
    assert_int_equal(faccessat(dir, "kept/file", F_OK, 0), 0);
    assert_int_equal(silt_remove(dir, "kept", &e), 0);
    close_place(dir);
}

TEST(remove_goes_deeper_than_any_path)
{
    struct silt_error e;
    int dir = open_place(), at = dir;
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        if (at != dir)
            (void)close(at);
        at = next;
    }
    (void)close(at);
    assert_int_equal(silt_remove(dir, "d", &e), 0);
    close_place(dir);
}

TEST(remove_all_takes_what_begins_with_the_prefix)
{
    struct silt_error e;
    int dir = open_place();
    assert_int_equal(mkdirat(dir, ".trash-1", 0755), 0);
    assert_int_equal(mkdirat(dir, ".trash-1/x", 0755), 0);
    assert_int_equal(mkdirat(dir, ".trash-2", 0755), 0);
    assert_int_equal(mkdirat(dir, "image", 0755), 0);
    assert_int_equal(silt_remove_all(dir, ".trash-", &e), 0);
    assert_int_equal(faccessat(dir, ".trash-1", F_OK, 0), -1);
    assert_int_equal(faccessat(dir, "image", F_OK, 0), 0);
    assert_int_equal(silt_remove_all(dir, "", &e), 0);
    close_place(dir);
}
