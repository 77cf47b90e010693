/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/confine.h"
#include "base/own.h"

#include <errno.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* Sorted. Includes what glibc, SQLite and libcrypto need on siltd's behalf, also on the way to
 * abort(). */
static const int allowed[] = {
    SCMP_SYS(accept4),
    SCMP_SYS(access), /* SQLite checks for a journal */
    SCMP_SYS(brk),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep), /* SQLite: a busy database */
    SCMP_SYS(close),
    SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_wait),
    SCMP_SYS(exit), /* a thread's exit */
    SCMP_SYS(exit_group),
    SCMP_SYS(fallocate), /* the database's reserve */
    SCMP_SYS(fchmod),
    SCMP_SYS(fcntl),
    SCMP_SYS(fdatasync),
    SCMP_SYS(fstat),
    SCMP_SYS(fsync),
    SCMP_SYS(ftruncate),
    SCMP_SYS(futex),
    SCMP_SYS(getcwd),  /* SQLite resolves the database's full name */
    SCMP_SYS(geteuid), /* SQLite changes file owners only as root */
    SCMP_SYS(getpeername),
    SCMP_SYS(getpid),
    SCMP_SYS(getrandom),
    SCMP_SYS(getsockname),
    SCMP_SYS(getsockopt),
    SCMP_SYS(gettid),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(lseek),
    SCMP_SYS(lstat),
    SCMP_SYS(madvise),
    SCMP_SYS(memfd_create),
    SCMP_SYS(mremap),
    SCMP_SYS(munmap),
    SCMP_SYS(newfstatat),
    SCMP_SYS(openat), /* siltd's own files and world-readable ones: it has no rights to others */
    SCMP_SYS(pipe2),
    SCMP_SYS(poll),
    SCMP_SYS(pread64),
    SCMP_SYS(preadv2),
    SCMP_SYS(pwrite64),
    SCMP_SYS(read),
    SCMP_SYS(readlink),
    SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(rseq), /* a worker thread may start after the filter */
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sched_getaffinity), /* sysconf(): number of processors */
    SCMP_SYS(sched_yield),
    SCMP_SYS(sendmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(set_robust_list), /* as rseq */
    SCMP_SYS(setsockopt),
    SCMP_SYS(shutdown),
    SCMP_SYS(sigaltstack), /* sanitizers */
    SCMP_SYS(stat),
    SCMP_SYS(sysinfo), /* sysconf(): size of memory */
    SCMP_SYS(tgkill),  /* abort() */
    SCMP_SYS(time),
    SCMP_SYS(uname),
    SCMP_SYS(unlink), /* SQLite removes a journal */
    SCMP_SYS(write),
    SCMP_SYS(writev),
};

/* The ioctl type of pidfds, which no device uses. */
enum { PIDFS_IOCTLS = 0xff, IOCTL_TYPE_SHIFT = 8, IOCTL_TYPE_MASK = 0xff00 };

/* No memory may become executable, and socket pairs are local ones: siltd's other sockets were
 * passed to it. */
static int allow_some(scmp_filter_ctx f)
{
    int rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (rc == 0)
        rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (rc == 0)
        rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_UNIX));
    if (rc == 0)
        rc = seccomp_rule_add(
            f, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
            SCMP_A1(SCMP_CMP_MASKED_EQ, IOCTL_TYPE_MASK, PIDFS_IOCTLS << IOCTL_TYPE_SHIFT));
    return rc;
}

/* Denied calls return an errno and do not kill, as in silt-proxy: a library that tries something
 * new does without it, and an attacker in siltd gains nothing from an errno. */
int silt_confine(struct silt_error *e)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (filter == NULL)
        return silt_fail(e, SILT_INTERNAL, "make a seccomp filter");
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC,
                              1); /* TSYNC: the worker threads already exist */
    if (rc == 0)
        rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE,
                              2); /* a binary tree, because the list is long */
    if (rc == 0)
        rc = allow_some(filter);
    for (size_t i = 0; i < SILT_COUNT(allowed) && rc == 0; i++)
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    if (rc == 0)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    if (rc < 0)
        return silt_fail(e, SILT_UNAVAILABLE, "load siltd's seccomp filter: error %d", -rc);
    return 0;
}
