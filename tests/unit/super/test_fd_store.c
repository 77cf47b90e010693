/* SPDX-License-Identifier: Apache-2.0 */
#include "super/fd_store.h"
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
    struct silt_fd_store k;
    int a = any_fd(), b = any_fd();
    silt_fd_store_init(&k, 4);
    assert_int_equal(k.items[3].channel, -1);
    silt_fd_store_put(&k, 3, a, b);
    assert_int_equal(k.items[3].channel, a);
    assert_int_equal(k.items[3].pidfd, b);
    silt_fd_store_drop(&k, 3);
    silt_fd_store_drop(&k, 3);
    assert_false(is_open(a));
    assert_false(is_open(b));
    silt_fd_store_fini(&k);
}

TEST(a_second_put_closes_the_first)
{
    struct silt_fd_store k;
    int a = any_fd(), b = any_fd(), c = any_fd(), d = any_fd();
    silt_fd_store_init(&k, 1);
    silt_fd_store_put(&k, 0, a, b);
    silt_fd_store_put(&k, 0, c, d);
    assert_false(is_open(a));
    assert_false(is_open(b));
    assert_true(is_open(c));
    silt_fd_store_fini(&k);
    assert_false(is_open(c));
    assert_false(is_open(d));
}

static struct silt_kept_context context(uint64_t number)
{
    return (struct silt_kept_context){.number = number,
                                      .fds = {any_fd(), any_fd(), any_fd(), any_fd()}};
}

TEST(contexts_are_kept_with_their_sandbox_and_go_with_it)
{
    struct silt_fd_store k;
    struct silt_kept_context one = context(1), two = context(2), three = context(3);
    silt_fd_store_init(&k, 2);
    assert_false(silt_fd_store_put_context(&k, 0, &one)); /* no such sandbox */
    silt_fd_store_put(&k, 0, any_fd(), any_fd());
    assert_true(silt_fd_store_put_context(&k, 0, &one));
    assert_true(silt_fd_store_put_context(&k, 0, &two));
    assert_false(silt_fd_store_put_context(&k, 0, &two));
    assert_true(silt_fd_store_put_context(&k, 0, &three));
    silt_fd_store_drop_context(&k, 0, 1);
    silt_fd_store_drop_context(&k, 0, 1);
    assert_false(is_open(one.fds[0]) || is_open(one.fds[1]) || is_open(one.fds[2])
                 || is_open(one.fds[3]));
    assert_int_equal(k.items[0].context_count, 2);
    assert_true(is_open(two.fds[3]) && is_open(three.fds[3]));
    silt_fd_store_drop(&k, 0);
    assert_false(is_open(two.fds[0]) || is_open(three.fds[0]));
    silt_fd_store_fini(&k);
}

TEST(a_sandbox_keeps_a_bounded_number_of_contexts)
{
    struct silt_fd_store k;
    silt_fd_store_init(&k, 1);
    silt_fd_store_put(&k, 0, any_fd(), any_fd());
    for (uint64_t n = 1; n <= SILT_SUPER_CONTEXTS_MAX; n++) {
        struct silt_kept_context c = context(n);
        assert_true(silt_fd_store_put_context(&k, 0, &c));
    }
    struct silt_kept_context more = context(1000);
    assert_false(silt_fd_store_put_context(&k, 0, &more));
    for (int i = 0; i < SILT_SUPER_CONTEXT_FDS; i++)
        silt_close_fd(&more.fds[i]);
    silt_fd_store_fini(&k);
}
