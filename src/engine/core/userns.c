/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/userns.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>

/* Enough for a function that only sleeps, and for the signal frame it never gets. */
enum { PARK_STACK = 4096 };

static int put_map(pid_t pid, const char *file, struct silt_userns_map map, struct silt_error *e)
{
    char path[64];
    char text[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    (void)snprintf(text, sizeof(text), "%u %u %u\n", map.inside, map.outside, map.count);
    return silt_fd_put(AT_FDCWD, path, text, e);
}

int silt_userns_write_maps(pid_t pid, struct silt_userns_map map, struct silt_error *e)
{
    if (put_map(pid, "uid_map", map, e) < 0)
        return -1;
    return put_map(pid, "gid_map", map, e);
}

/* Runs in a child that shares our memory and descriptors, so it touches neither. It must not
 * outlive us, since we may be killed at any moment. */
static int park(void *parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != *(const pid_t *)parent)
        return 1;
    while (pause() < 0)
        continue;
    return 0;
}

static int open_of(pid_t pid, struct silt_userns_map map, int *ret_fd, struct silt_error *e)
{
    char path[64];
    if (silt_userns_write_maps(pid, map, e) < 0)
        return -1;
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open %s", path);
    *ret_fd = fd;
    return 0;
}

/* A new namespace needs a process. Sharing memory and descriptors makes that process free to
 * create; SIGCHLD is ignored, so it need not be reaped. */
int silt_userns_make(struct silt_userns_map map, int *ret_fd, struct silt_error *e)
{
    static _Alignas(16) char stack[PARK_STACK];
    silt_auto_fd pidfd = -1;
    pid_t self = getpid();
    pid_t pid =
        clone(park, stack + sizeof(stack),
              CLONE_NEWUSER | CLONE_VM | CLONE_FILES | CLONE_PIDFD | SIGCHLD, &self, &pidfd);
    if (pid < 0) {
        pidfd = -1;
        return silt_fail_errno(e, "clone into a user namespace");
    }
    int done = open_of(pid, map, ret_fd, e);
    if (pidfd_send_signal(pidfd, SIGKILL, NULL, 0) < 0)
        abort(); /* our own child, held by pidfd: only a bug of ours can cause this */
    return done;
}
