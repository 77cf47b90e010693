/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cage.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <pthread.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

enum { ROUNDS = 1500, SOMEBODY = 64999 };

struct child {
    pid_t pid;
    pthread_barrier_t both;
};

/* As silt-priv does it in another thread. */
static void *reap(void *context)
{
    struct child *c = context;
    for (int i = 0; i < ROUNDS; i++) {
        (void)pthread_barrier_wait(&c->both);
        (void)waitpid(c->pid, NULL, 0);
        (void)pthread_barrier_wait(&c->both);
    }
    return NULL;
}

TEST(a_process_that_ends_meanwhile_is_not_taken_for_another)
{
    uint32_t ids = getuid() == 0 ? SOMEBODY : getuid();
    struct child c;
    struct silt_error e;
    pthread_t thread;
    int failed = 0;
    assert_int_equal(pthread_barrier_init(&c.both, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, reap, &c), 0);
    for (int i = 0; i < ROUNDS; i++) {
        int ready[2];
        assert_int_equal(pipe(ready), 0);
        c.pid = fork();
        assert_true(c.pid >= 0);
        if (c.pid == 0) {
            if (setuid(ids) < 0 || write(ready[1], "", 1) != 1)
                _exit(1);
            _exit(0);
        }
        char byte;
        silt_auto_fd pidfd = pidfd_open(c.pid, 0);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        (void)close(ready[0]);
        (void)close(ready[1]);
        (void)pthread_barrier_wait(&c.both);
        failed += silt_cage_end(ids, pidfd, 0, &e) < 0;
        (void)pthread_barrier_wait(&c.both);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_barrier_destroy(&c.both);
    if (failed > 0)
        fail_msg("%d times: %s", failed, e.text);
}
