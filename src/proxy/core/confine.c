/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/core/confine.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* System calls that every role needs beside its own list. */
enum may { SOCKETS = 1, READING = 2 };

static const int of_proxy[] = {
    SCMP_SYS(accept4),
    SCMP_SYS(brk),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(close),
    SCMP_SYS(connect),
    SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_pwait2),
    SCMP_SYS(epoll_wait),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(fcntl),
    SCMP_SYS(fstat),
    SCMP_SYS(futex),
    SCMP_SYS(getpeername),
    SCMP_SYS(getpid),
    SCMP_SYS(getrandom),
    SCMP_SYS(getsockname),
    SCMP_SYS(getsockopt),
    SCMP_SYS(gettid),
    SCMP_SYS(lseek),
    SCMP_SYS(madvise),
    SCMP_SYS(mmap),
    SCMP_SYS(mprotect),
    SCMP_SYS(mremap),
    SCMP_SYS(munmap),
    SCMP_SYS(newfstatat),
    SCMP_SYS(pread64),
    SCMP_SYS(read),
    SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sendmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(setsockopt),
    SCMP_SYS(shutdown),
    SCMP_SYS(statx),
    SCMP_SYS(tgkill),
    SCMP_SYS(write),
    SCMP_SYS(writev),
};

static const int of_preview[] = {
    SCMP_SYS(accept4),       SCMP_SYS(brk),
    SCMP_SYS(clock_gettime), SCMP_SYS(close),
    SCMP_SYS(epoll_ctl),     SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_wait),    SCMP_SYS(exit),
    SCMP_SYS(exit_group),    SCMP_SYS(fcntl),
    SCMP_SYS(fstat),         SCMP_SYS(futex),
    SCMP_SYS(getpeername),   SCMP_SYS(getpid),
    SCMP_SYS(getrandom),     SCMP_SYS(gettid),
    SCMP_SYS(lseek),         SCMP_SYS(madvise),
    SCMP_SYS(mmap),          SCMP_SYS(mprotect),
    SCMP_SYS(mremap),        SCMP_SYS(munmap),
    SCMP_SYS(newfstatat),    SCMP_SYS(pread64),
    SCMP_SYS(read),          SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),       SCMP_SYS(restart_syscall),
    SCMP_SYS(rt_sigaction),  SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),  SCMP_SYS(sendmsg),
    SCMP_SYS(sendto),        SCMP_SYS(setsockopt),
    SCMP_SYS(shutdown),      SCMP_SYS(tgkill),
    SCMP_SYS(write),         SCMP_SYS(writev),
};

static const int of_dial[] = {
    SCMP_SYS(brk),          SCMP_SYS(clock_gettime),
    SCMP_SYS(close),        SCMP_SYS(exit),
    SCMP_SYS(exit_group),   SCMP_SYS(futex),
    SCMP_SYS(getpid),       SCMP_SYS(gettid),
    SCMP_SYS(mmap),         SCMP_SYS(munmap),
    SCMP_SYS(poll),         SCMP_SYS(ppoll),
    SCMP_SYS(recvmsg),      SCMP_SYS(restart_syscall),
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(sendmsg),
    SCMP_SYS(tgkill),       SCMP_SYS(write),
    SCMP_SYS(writev),
};

static int allow_sockets(scmp_filter_ctx filter)
{
    int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                              SCMP_A0(SCMP_CMP_EQ, AF_INET));
    if (rc == 0)
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                              SCMP_A0(SCMP_CMP_EQ, AF_INET6));
    return rc;
}

static int allow_reading(scmp_filter_ctx filter)
{
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                            SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY));
}

static int confine(const int *calls, size_t count, enum may may, struct silt_error *e)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (filter == NULL)
        return silt_fail(e, SILT_INTERNAL, "make a seccomp filter");
    int rc = (may & SOCKETS) != 0 ? allow_sockets(filter) : 0;
    if (rc == 0 && (may & READING) != 0)
        rc = allow_reading(filter);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
    if (rc == 0)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    if (rc < 0)
        return silt_fail(e, SILT_UNAVAILABLE, "load silt-proxy's seccomp filter: error %d", -rc);
    return 0;
}

int silt_proxy_confine(struct silt_error *e)
{
    return confine(of_proxy, SILT_COUNT(of_proxy), SOCKETS | READING, e);
}

/* It gets connected sockets, so it may not connect any itself. */
int silt_preview_confine(struct silt_error *e)
{
    return confine(of_preview, SILT_COUNT(of_preview), READING, e);
}

int silt_dial_confine(struct silt_error *e)
{
    return confine(of_dial, SILT_COUNT(of_dial), SOCKETS, e);
}
