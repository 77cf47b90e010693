/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/child.h"
#include "base/own.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors are parked here until their final numbers are free. */
enum { HIGH_FD = 128 };

int silt_child_join(const int *tasks, int count, struct silt_error *e)
{
    for (int i = 0; i < count; i++)
        if (write(tasks[i], "0", 1) != 1)
            return silt_fail_errno(e, "join control group %d", i);
    return 0;
}

int silt_child_become_root(struct silt_error *e)
{
    sigset_t none;
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return silt_fail_errno(e, "become root inside");
    if (setsid() < 0)
        return silt_fail_errno(e, "make a terminal session");
    for (int i = 1; i < SIGRTMIN; i++)
        (void)signal(i, SIG_DFL); /* fails for SIGKILL, SIGSTOP and libc's own */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)umask(022);
    return 0;
}

void silt_child_pass(struct silt_child_fds *p, int fd)
{
    if (p->count < SILT_CHILD_FDS_MAX)
        p->fds[p->count] = fd;
    p->count++;
}

static int raise_fd(int *fd, struct silt_error *e)
{
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return silt_fail_errno(e, "move descriptor %d", *fd);
    *fd = high;
    return 0;
}

int silt_child_place(const struct silt_child_fds *p, int first, int *sync, int *program,
                     struct silt_error *e)
{
    struct silt_child_fds high = *p;
    if (p->count > SILT_CHILD_FDS_MAX)
        return silt_fail(e, SILT_LIMIT, "%d descriptors for a program, at most %d", p->count,
                         SILT_CHILD_FDS_MAX);
    if (raise_fd(sync, e) < 0 || raise_fd(program, e) < 0)
        return -1;
    for (int i = 0; i < high.count; i++)
        if (raise_fd(&high.fds[i], e) < 0)
            return -1;
    for (int i = 0; i < high.count; i++)
        if (dup2(high.fds[i], first + i) < 0)
            return silt_fail_errno(e, "place descriptor %d", first + i);
    if (close_range((unsigned)(first + high.count), ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        return silt_fail_errno(e, "close descriptors");
    return 0;
}
