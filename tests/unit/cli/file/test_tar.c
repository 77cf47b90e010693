/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/file/tar.h"
#include "base/fd.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct silt_error e;

static void make(const char *directory, const char *name, const char *text, mode_t mode)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    silt_auto_fd fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(silt_fd_write_all(fd, silt_slice_of(text), &e), 0);
    assert_int_equal(fchmod(fd, mode), 0);
}

static void pass_on(int from, int to)
{
    static char piece[65536];
    ssize_t n;
    while ((n = read(from, piece, sizeof(piece))) > 0)
        assert_int_equal(silt_fd_write_all(to, (silt_slice){piece, (size_t)n}, &e), 0);
}

static void forget(const char *directory, const char *name)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    (void)unlink(path);
}

TEST(a_directory_comes_out_as_it_went_in_without_setuid_bits)
{
    char from[] = "/tmp/silt-tar-XXXXXX", to[] = "/tmp/silt-tar-XXXXXX", path[PATH_MAX];
    struct silt_tar pack, unpack;
    struct stat st;
    assert_non_null(mkdtemp(from));
    assert_non_null(mkdtemp(to));
    make(from, "-file with spaces", "text", 0640);
    make(from, "root shell", "x", 04755);
    assert_int_equal(silt_tar_pack(&pack, from, &e), 0);
    assert_int_equal(silt_tar_unpack(&unpack, to, &e), 0);
    pass_on(pack.fd, unpack.fd);
    assert_int_equal(silt_tar_end(&pack, &e), 0);
    assert_int_equal(silt_tar_end(&unpack, &e), 0);
    (void)snprintf(path, sizeof(path), "%s/root shell", to);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07700, 0700);
    (void)snprintf(path, sizeof(path), "%s/-file with spaces", to);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 4);
    for (int i = 0; i < 2; i++) {
        forget(i == 0 ? from : to, "-file with spaces");
        forget(i == 0 ? from : to, "root shell");
        assert_int_equal(rmdir(i == 0 ? from : to), 0);
    }
}

TEST(a_tar_that_fails_names_the_directory)
{
    struct silt_tar t;
    char byte;
    assert_int_equal(silt_tar_pack(&t, "/no/such/directory", &e), 0);
    assert_int_equal(read(t.fd, &byte, 1) <= 1, 1);
    assert_int_equal(silt_tar_end(&t, &e), -1);
    assert_non_null(strstr(e.text, "/no/such/directory"));
}

TEST(the_size_of_a_directory_is_about_what_tar_makes_of_it)
{
    char from[] = "/tmp/silt-tar-XXXXXX";
    assert_non_null(mkdtemp(from));
    make(from, "a", "1234", 0644);
    assert_int_equal(silt_tar_size(from), 3 * 512);
    forget(from, "a");
    assert_int_equal(rmdir(from), 0);
}
