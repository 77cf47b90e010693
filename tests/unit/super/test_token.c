/* SPDX-License-Identifier: Apache-2.0 */
#include "super/token.h"
#include "base/fd.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <sys/stat.h>

static char directory[32];
static char path[64];

static void make_directory(void)
{
    (void)snprintf(directory, sizeof(directory), "/tmp/silt-token-XXXXXX");
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/token", directory);
}

static void remove_directory(void)
{
    (void)unlink(path);
    assert_int_equal(rmdir(directory), 0); /* nothing else was left there */
}

static int prepare_with(const char *text, mode_t mode, struct silt_error *e)
{
    silt_auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return silt_token_prepare(path, e);
}

TEST(a_missing_token_is_made_and_kept)
{
    struct silt_error e;
    struct stat st;
    char first[64] = "", second[64] = "";
    make_directory();
    assert_int_equal(silt_token_prepare(path, &e), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    silt_auto_fd a = -1, b = -1;
    assert_int_equal(silt_token_open(path, &a, &e), 0);
    assert_int_equal(read(a, first, sizeof(first) - 1), 44);
    assert_int_equal(
        strspn(first, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), 43);
    assert_int_equal(silt_token_prepare(path, &e), 0);
    assert_int_equal(silt_token_open(path, &b, &e), 0);
    assert_int_equal(read(b, second, sizeof(second) - 1), 44);
    assert_string_equal(first, second);
    remove_directory();
}

TEST(a_token_that_could_be_guessed_is_refused)
{
    const char *bad[] = {"",
                         "short",
                         "fifteen-chars-x",
                         "changeme-changeme-changeme",
                         "CHANGE_THIS_TOKEN_NOW",
                         "xxxxxxxxxxxxxxxxxxxxxxxx",
                         "your-token-goes-here",
                         "two words of some length",
                         "first-line-of-two\nsecond"};
    struct silt_error e;
    make_directory();
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        if (prepare_with(bad[i], 0600, &e) == 0)
            fail_msg("%s was taken", bad[i]);
    assert_int_equal(prepare_with("5f0c-a-good-one-9\n", 0600, &e), 0);
    remove_directory();
}

TEST(a_token_that_others_can_read_is_refused)
{
    struct silt_error e;
    make_directory();
    assert_int_equal(prepare_with("5f0c-a-good-one-9", 0644, &e), -1);
    assert_int_equal(e.code, SILT_DENIED);
    remove_directory();
}

TEST(a_token_file_that_is_no_file_does_not_hold_us)
{
    struct silt_error e;
    make_directory();
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(silt_token_prepare(path, &e), -1);
    remove_directory();
}
