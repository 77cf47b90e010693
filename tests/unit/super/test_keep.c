/* SPDX-License-Identifier: Apache-2.0 */
#include "super/keep.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <fcntl.h>

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int any_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

TEST(keep_holds_until_dropped)
{
    struct silt_keep k;
    int a = any_fd(), b = any_fd();
    silt_keep_init(&k, 4);
    assert_int_equal(k.items[3].channel, -1);
    silt_keep_put(&k, 3, a, b);
    assert_int_equal(k.items[3].channel, a);
    assert_int_equal(k.items[3].pidfd, b);
    silt_keep_drop(&k, 3);
    silt_keep_drop(&k, 3);
    assert_false(is_open(a));
    assert_false(is_open(b));
    silt_keep_fini(&k);
}

TEST(a_second_put_closes_the_first)
{
    struct silt_keep k;
    int a = any_fd(), b = any_fd(), c = any_fd(), d = any_fd();
    silt_keep_init(&k, 1);
    silt_keep_put(&k, 0, a, b);
    silt_keep_put(&k, 0, c, d);
    assert_false(is_open(a));
    assert_false(is_open(b));
    assert_true(is_open(c));
    silt_keep_fini(&k);
    assert_false(is_open(c));
    assert_false(is_open(d));
}
