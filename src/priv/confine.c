/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/confine.h"
#include "base/own.h"
#include "engine/core/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* SYS_ADMIN and SYS_PTRACE: setns with the pidfd of a process with other ids. */
static const uint64_t rights =
    1ULL << CAP_KILL | 1ULL << CAP_NET_ADMIN | 1ULL << CAP_SYS_ADMIN | 1ULL << CAP_SYS_PTRACE;

/* Sorted. Includes what glibc needs, also for abort(). */
static const int allowed[] = {
    SCMP_SYS(brk),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(close),
    SCMP_SYS(exit_group),
    SCMP_SYS(fcntl),
    SCMP_SYS(fstat),
    SCMP_SYS(futex),
    SCMP_SYS(getdents64),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(lseek),
    SCMP_SYS(madvise),
    SCMP_SYS(mremap),
    SCMP_SYS(munmap),
    SCMP_SYS(newfstatat),
    SCMP_SYS(openat), /* in mount_stage, where the machine's files are out of reach */
    SCMP_SYS(pidfd_open),
    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(poll),
    SCMP_SYS(pread64),
    SCMP_SYS(read),
    SCMP_SYS(recvfrom),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sendto),
    SCMP_SYS(setsockopt),
    SCMP_SYS(sigaltstack), /* sanitizers */
    SCMP_SYS(tgkill),      /* abort() */
    SCMP_SYS(write),
};

static int allow_some(scmp_filter_ctx f)
{
    int rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (rc == 0)
        rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (rc == 0)
        rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(setns), 1,
                              SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, CLONE_NEWNET));
    if (rc == 0)
        rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_NETLINK));
    return rc;
}

/* Refused with an errno, not killed, as in siltd: a C library that tries something new falls
 * back. */
int silt_priv_confine_watcher(struct silt_error *e)
{
    if (silt_caps_keep(rights, e) < 0)
        return -1;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (filter == NULL)
        return silt_fail(e, SILT_INTERNAL, "make a seccomp filter");
    int rc = allow_some(filter);
    for (size_t i = 0; i < SILT_COUNT(allowed) && rc == 0; i++)
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    if (rc == 0)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    if (rc < 0)
        return silt_fail(e, SILT_UNAVAILABLE, "load the watcher's seccomp filter: error %d", -rc);
    return 0;
}
