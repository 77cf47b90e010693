/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/confine.h"
#include "base/own.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/socket.h>

static const int never[] = {
    SCMP_SYS(execve),          SCMP_SYS(execveat),        SCMP_SYS(fork),
    SCMP_SYS(vfork),           SCMP_SYS(ptrace),          SCMP_SYS(mount),
    SCMP_SYS(umount2),         SCMP_SYS(pivot_root),      SCMP_SYS(chroot),
    SCMP_SYS(setns),           SCMP_SYS(unshare),         SCMP_SYS(bpf),
    SCMP_SYS(kexec_load),      SCMP_SYS(kexec_file_load), SCMP_SYS(init_module),
    SCMP_SYS(finit_module),    SCMP_SYS(delete_module),   SCMP_SYS(keyctl),
    SCMP_SYS(add_key),         SCMP_SYS(request_key),     SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),  SCMP_SYS(open_tree),       SCMP_SYS(move_mount),
    SCMP_SYS(fsopen),          SCMP_SYS(fsmount),         SCMP_SYS(mount_setattr),
    SCMP_SYS(open_by_handle_at), SCMP_SYS(connect),       SCMP_SYS(bind),
    SCMP_SYS(personality),     SCMP_SYS(setuid),          SCMP_SYS(setgid),
    SCMP_SYS(setresuid),       SCMP_SYS(setresgid),       SCMP_SYS(mknod),
    SCMP_SYS(mknodat),
};

int silt_confine(struct silt_error *e)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == NULL)
        return silt_fail(e, SILT_INTERNAL, "make a seccomp filter");
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1); /* the worker threads are there already */
    for (size_t i = 0; i < SILT_COUNT(never) && rc == 0; i++)
        rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), never[i], 0);
    if (rc == 0) /* threads, yes; processes, no */
        rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    if (rc == 0) /* its flags are out of a filter's sight: glibc falls back to clone */
        rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (rc == 0)
        rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                              SCMP_A0(SCMP_CMP_NE, AF_UNIX));
    if (rc == 0)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    if (rc < 0)
        return silt_fail(e, SILT_UNAVAILABLE, "load siltd's seccomp filter: error %d", -rc);
    return 0;
}
