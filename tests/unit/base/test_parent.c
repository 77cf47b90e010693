/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parent.h"
#include "unit/base/unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child's child: says that it is there, waits for a byte, asks, and says so if it may go on. */
static _Noreturn void be_grandchild(pid_t parent, int begin, int said)
{
    char byte;
    (void)alarm(60); /* one that goes on for ever is a failure */
    if (write(said, "x", 1) != 1 || read(begin, &byte, 1) != 1 || silt_parent_end_with(parent) < 0)
        _exit(0);
    (void)!write(said, "x", 1);
    for (;;)
        (void)pause();
}

/* Its parent, which is our child. */
static pid_t have_child(int *ret_begin, int *ret_said)
{
    int begin[2], said[2];
    assert_int_equal(pipe(begin), 0);
    assert_int_equal(pipe(said), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pid_t self = getpid();
        (void)close(begin[1]);
        (void)close(said[0]);
        if (fork() == 0)
            be_grandchild(self, begin[0], said[1]);
        for (;;)
            (void)pause();
    }
    (void)close(begin[0]);
    (void)close(said[1]);
    char byte;
    assert_int_equal(read(said[0], &byte, 1), 1);
    *ret_begin = begin[1];
    *ret_said = said[0];
    return child;
}

static void end_child(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(a_child_ends_with_its_parent_and_not_before)
{
    int begin, said;
    char byte;
    pid_t child = have_child(&begin, &said);
    assert_int_equal(write(begin, "x", 1), 1);
    assert_int_equal(read(said, &byte, 1), 1);
    end_child(child);
    assert_int_equal(read(said, &byte, 1), 0);
    (void)close(begin);
    (void)close(said);
}

TEST(a_child_whose_parent_died_before_it_asked_does_not_go_on)
{
    int begin, said;
    char byte;
    pid_t child = have_child(&begin, &said);
    end_child(child);
    assert_int_equal(write(begin, "x", 1), 1);
    assert_int_equal(read(said, &byte, 1), 0);
    (void)close(begin);
    (void)close(said);
}
