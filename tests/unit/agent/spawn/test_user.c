/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/passwd and /etc/group of images, which may be anything. */
#include "agent/spawn/user.h"
#include "base/fd.h"
#include "unit/base/unit.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int file_of(silt_slice text)
{
    struct silt_error e;
    int fd = memfd_create("file", MFD_CLOEXEC);
    assert_int_equal(silt_fd_write_all(fd, text, &e), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static int find(const char *who, silt_slice passwd, silt_slice group, struct silt_user *ret)
{
    struct silt_error e;
    silt_auto_fd p = file_of(passwd), g = file_of(group);
    return silt_user_find(who, p, g, ret, &e);
}

TEST(user_is_found_between_lines_that_are_none)
{
    static struct silt_user u;
    silt_slice passwd =
        SILT_LIT("# comment\n\n+::::::\nx\n:x:1:1::/:\nbad:x:-1:1::/:\nbad:x:1:::/:\n"
                 "joe:x:7:8::/home/joe\njoe:x:9:9::/:");
    silt_slice group = SILT_LIT("g:x:50:a,joe\nbad:x:joe:joe\n\nh:x:51:joe2\ni:x:52:joe");
    assert_int_equal(find("joe", passwd, group, &u), 0);
    assert_int_equal(u.uid, 7);
    assert_int_equal(u.gid, 8);
    assert_string_equal(u.home, "/home/joe");
    assert_int_equal(u.ngroups, 3);
    assert_int_equal(u.groups[1], 50);
    assert_int_equal(u.groups[2], 52);
    assert_int_equal(find("bad", passwd, group, &u), -1);
    assert_int_equal(find("", passwd, group, &u), -1);
    assert_int_equal(find("jo", passwd, group, &u), -1);
}

TEST(user_is_found_behind_lines_without_end_and_not_behind_too_many)
{
    static struct silt_user u;
    static char text[2 << 20];
    silt_slice entry = SILT_LIT("\njoe:x:7:8::/:\n");
    memset(text, 'x', sizeof(text));
    memcpy(text + 100000, entry.data, entry.len);
    assert_int_equal(find("joe", (silt_slice){text, 100000 + entry.len}, SILT_LIT(""), &u), 0);
    assert_int_equal(u.uid, 7);
    memset(text, '\n', sizeof(text));
    memcpy(text + (3 << 19), entry.data, entry.len);
    assert_int_equal(find("joe", (silt_slice){text, sizeof(text)}, SILT_LIT(""), &u), -1);
}

TEST(user_has_no_more_groups_than_fit)
{
    static struct silt_user u;
    static char text[8192];
    size_t len = 0;
    for (int i = 0; i < 300; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "g:x:%d:joe\n", i + 100);
    assert_int_equal(find("joe", SILT_LIT("joe:x:7:8::/:"), (silt_slice){text, len}, &u), 0);
    assert_int_equal(u.ngroups, SILT_USER_GROUPS_MAX);
}

TEST(user_has_the_group_that_is_named)
{
    static struct silt_user u;
    struct silt_error e;
    silt_slice passwd = SILT_LIT("joe:x:7:8::/home/joe\n"),
               group = SILT_LIT("bad:x\na:x:50:joe\nb:x:51:\n52:x:53:\n");
    assert_int_equal(find("joe:b", passwd, group, &u), 0);
    assert_int_equal(u.uid, 7);
    assert_int_equal(u.gid, 51);
    assert_int_equal(u.ngroups, 0);
    assert_string_equal(u.home, "/home/joe");
    assert_int_equal(find("7:b", passwd, group, &u), 0);
    assert_int_equal(u.gid, 51);
    assert_string_equal(u.name, "joe");
    assert_int_equal(find("joe:60", passwd, group, &u), 0);
    assert_int_equal(u.gid, 60);
    assert_int_equal(find("joe:", passwd, group, &u), -1);
    assert_int_equal(find("joe:c", passwd, group, &u), -1);
    assert_int_equal(find("joe:bad", passwd, group, &u), -1);
    assert_int_equal(find(":b", passwd, group, &u), -1);
    assert_int_equal(silt_user_find("9:b", -1, -1, &u, &e), -1);
    assert_int_equal(e.code, SILT_NOT_FOUND);
}

TEST(user_has_numbers_of_a_sandbox)
{
    static struct silt_user u;
    struct silt_error e;
    assert_int_equal(silt_user_find("65535:65535", -1, -1, &u, &e), 0);
    assert_int_equal(silt_user_find("65536", -1, -1, &u, &e), -1);
    assert_int_equal(e.code, SILT_DENIED);
    assert_int_equal(silt_user_find("1:65536", -1, -1, &u, &e), -1);
    assert_int_equal(find("joe", SILT_LIT("joe:x:70000:8::/:"), SILT_LIT(""), &u), -1);
    assert_int_equal(
        find("joe", SILT_LIT("joe:x:7:8::/:"), SILT_LIT("a:x:70000:joe\nb:x:9:joe\n"), &u), 0);
    assert_int_equal(u.ngroups, 2);
    assert_int_equal(u.groups[1], 9);
}

TEST(user_is_a_number_in_one_spelling_only)
{
    static const char wrong[][24] = {"",           ":",
                                     "+0",         "-0",
                                     "-1",         " 0",
                                     "0 ",         "\n0",
                                     "00",         "007",
                                     "0x0",        "1e3",
                                     "1000abc",    "0;0",
                                     "0:",         ":0",
                                     "0:+0",       "0: 0",
                                     "0:0x0",      "0:0:0",
                                     "4294967296", "18446744073709551616"};
    static struct silt_user u;
    struct silt_error e;
    for (size_t i = 0; i < SILT_COUNT(wrong); i++)
        if (silt_user_find(wrong[i], -1, -1, &u, &e) == 0)
            fail_msg("\"%s\" is user %u, group %u", wrong[i], u.uid, u.gid);
    assert_int_equal(silt_user_find("0:0", -1, -1, &u, &e), 0);
}

TEST(user_without_files_is_a_number_or_nobody)
{
    static struct silt_user u;
    struct silt_error e;
    assert_int_equal(silt_user_find("12:13", -1, -1, &u, &e), 0);
    assert_int_equal(u.uid, 12);
    assert_int_equal(u.gid, 13);
    assert_int_equal(u.ngroups, 0);
    assert_string_equal(u.home, "/");
    assert_int_equal(silt_user_find("root", -1, -1, &u, &e), -1);
    assert_int_equal(e.code, SILT_NOT_FOUND);
}
