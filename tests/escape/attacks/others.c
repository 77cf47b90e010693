/* SPDX-License-Identifier: Apache-2.0 */
/* others PID...: tries to read, trace and take from processes that are not ours. */
#define _GNU_SOURCE
#include "attempt.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIDFD_OPEN = 434, PIDFD_GETFD = 438 };

static void on(pid_t pid)
{
    char name[64];
    char bytes[8];
    struct iovec local = {bytes, sizeof bytes};
    struct iovec remote = {(void *)(uintptr_t)0x400000, sizeof bytes};
    snprintf(name, sizeof name, "%d-read", pid);
    attempt(name, process_vm_readv(pid, &local, 1, &remote, 1, 0));
    snprintf(name, sizeof name, "%d-write", pid);
    attempt(name, process_vm_writev(pid, &local, 1, &remote, 1, 0));
    snprintf(name, sizeof name, "%d-ptrace", pid);
    if (attempt(name, ptrace(PTRACE_SEIZE, pid, NULL, NULL)) >= 0)
        ptrace(PTRACE_DETACH, pid, NULL, NULL);
    snprintf(name, sizeof name, "/proc/%d/mem", pid);
    attempt(name, open(name, O_RDWR));
    snprintf(name, sizeof name, "%d-getfd", pid);
    long pidfd = syscall(PIDFD_OPEN, pid, 0);
    attempt(name, pidfd < 0 ? -1 : syscall(PIDFD_GETFD, pidfd, 3, 0));
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        on(atoi(argv[i]));
    return 0;
}
