/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/seccomp.h"
#include "base/own.h"
#include "base/test_switch.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Numbers that libseccomp 2.5 has no names for; the same on every architecture. */
enum {
    NR_OPEN_TREE_ATTR = 467,
    /* The newest system call (file_setattr, Linux 6.17) that this list considers: system calls of
     * newer kernels fail with ENOSYS until they are reviewed. */
    NR_KNOWN_MAX = 469,
};

enum group {
    ALWAYS,
    MOUNTS,  /* test switch mount_block */
    HANDLES, /* test switch handles */
    SYSLOG,  /* test switch infoleaks */
    GROUP_MAX
};

static const char *const switches[GROUP_MAX] = {
    [ALWAYS] = NULL,
    [MOUNTS] = "mount_block",
    [HANDLES] = "handles",
    [SYSLOG] = "infoleaks",
};

struct row {
    int call;
    int answer; /* errno */
    enum group group;
};

/* ptrace is allowed: since 4.8 a tracer cannot bypass the filter, and PID 1 is not dumpable. */
static const struct row rows[] = {
    /* only silt-priv changes mounts */
    {SCMP_SYS(mount), EPERM, MOUNTS},
    {SCMP_SYS(umount), EPERM, MOUNTS},
    {SCMP_SYS(umount2), EPERM, MOUNTS},
    {SCMP_SYS(pivot_root), EPERM, MOUNTS},
    {SCMP_SYS(open_tree), EPERM, MOUNTS},
    {NR_OPEN_TREE_ATTR, EPERM, MOUNTS},
    {SCMP_SYS(move_mount), EPERM, MOUNTS},
    {SCMP_SYS(fsopen), EPERM, MOUNTS},
    {SCMP_SYS(fsconfig), EPERM, MOUNTS},
    {SCMP_SYS(fsmount), EPERM, MOUNTS},
    {SCMP_SYS(fspick), EPERM, MOUNTS},
    {SCMP_SYS(mount_setattr), EPERM, MOUNTS},
    /* other namespaces, files by handle */
    {SCMP_SYS(setns), EPERM, ALWAYS},
    {SCMP_SYS(open_by_handle_at), EPERM, HANDLES},
    /* the kernel itself */
    {SCMP_SYS(init_module), EPERM, ALWAYS},
    {SCMP_SYS(finit_module), EPERM, ALWAYS},
    {SCMP_SYS(delete_module), EPERM, ALWAYS},
    {SCMP_SYS(create_module), ENOSYS, ALWAYS},
    {SCMP_SYS(query_module), ENOSYS, ALWAYS},
    {SCMP_SYS(get_kernel_syms), ENOSYS, ALWAYS},
    {SCMP_SYS(kexec_load), EPERM, ALWAYS},
    {SCMP_SYS(kexec_file_load), EPERM, ALWAYS},
    {SCMP_SYS(reboot), EPERM, ALWAYS},
    {SCMP_SYS(swapon), EPERM, ALWAYS},
    {SCMP_SYS(swapoff), EPERM, ALWAYS},
    {SCMP_SYS(acct), EPERM, ALWAYS},
    {SCMP_SYS(quotactl), EPERM, ALWAYS},
    {SCMP_SYS(quotactl_fd), EPERM, ALWAYS},
    {SCMP_SYS(nfsservctl), ENOSYS, ALWAYS},
    {SCMP_SYS(lookup_dcookie), EPERM, ALWAYS},
    {SCMP_SYS(_sysctl), ENOSYS, ALWAYS},
    {SCMP_SYS(uselib), ENOSYS, ALWAYS},
    {SCMP_SYS(sysfs), ENOSYS, ALWAYS},
    {SCMP_SYS(ustat), ENOSYS, ALWAYS},
    {SCMP_SYS(vserver), ENOSYS, ALWAYS},
    {SCMP_SYS(syslog), EPERM, SYSLOG},
    {SCMP_SYS(settimeofday), EPERM, ALWAYS},
    {SCMP_SYS(clock_settime), EPERM, ALWAYS},
    {SCMP_SYS(vhangup), EPERM, ALWAYS},
    /* the hardware */
    {SCMP_SYS(iopl), EPERM, ALWAYS},
    {SCMP_SYS(ioperm), EPERM, ALWAYS},
    {SCMP_SYS(modify_ldt), EPERM, ALWAYS},
    {SCMP_SYS(move_pages), EPERM, ALWAYS},
    {SCMP_SYS(migrate_pages), EPERM, ALWAYS},
    /* large attack surfaces that no program needs */
    {SCMP_SYS(bpf), EPERM, ALWAYS},
    {SCMP_SYS(perf_event_open), EPERM, ALWAYS},
    {SCMP_SYS(userfaultfd), EPERM, ALWAYS},
    {SCMP_SYS(fanotify_init), EPERM, ALWAYS},
    {SCMP_SYS(memfd_secret), ENOSYS, ALWAYS},
    {SCMP_SYS(io_uring_setup), ENOSYS, ALWAYS},
    {SCMP_SYS(io_uring_enter), ENOSYS, ALWAYS},
    {SCMP_SYS(io_uring_register), ENOSYS, ALWAYS},
    /* keys belong to the machine's user, not to the user namespace */
    {SCMP_SYS(keyctl), EPERM, ALWAYS},
    {SCMP_SYS(add_key), EPERM, ALWAYS},
    {SCMP_SYS(request_key), EPERM, ALWAYS},
};

static const uint64_t new_namespaces[] = {
    CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
    CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET,
};
static const uint64_t NEWTIME = 0x80; /* unshare only: in clone these bits are the exit signal */

/* The kernel uses only the low 32 bits of these arguments. */
static const uint64_t LOW = 0xffffffff;

/* The sum of libseccomp's results: 0 if all succeeded. */
static int refuse_namespaces(scmp_filter_ctx f)
{
    int bad = 0;
    for (size_t i = 0; i < SILT_COUNT(new_namespaces); i++) {
        uint64_t bit = new_namespaces[i];
        bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
        bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1,
                                SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
    }
    bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1,
                            SCMP_A0(SCMP_CMP_MASKED_EQ, NEWTIME, NEWTIME));
    return bad;
}

/* Injecting terminal input, console selection, line disciplines. */
static int refuse_tty_tricks(scmp_filter_ctx f)
{
    int bad = 0;
    if (!silt_without("tiocsti")) {
        bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                                SCMP_A1(SCMP_CMP_MASKED_EQ, LOW, TIOCSTI));
        bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                                SCMP_A1(SCMP_CMP_MASKED_EQ, LOW, TIOCLINUX));
    }
    bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                            SCMP_A1(SCMP_CMP_MASKED_EQ, LOW, TIOCSETD));
    return bad;
}

/* Multipath TCP and SMC: their queues are not in the socket lists with which silt-priv limits TCP
 * memory (engine/network/tcp_use.h). Programs that try them fall back to TCP. */
static int refuse_variants_of_tcp(scmp_filter_ctx f)
{
    static const uint64_t variants[] = {262 /* MPTCP */, 256 /* SMC */};
    int bad = 0;
    for (size_t i = 0; i < SILT_COUNT(variants) && !silt_without("tcp_memory"); i++)
        bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 1,
                                SCMP_A2(SCMP_CMP_MASKED_EQ, LOW, variants[i]));
    return bad;
}

/* Allowed: unix, IPv4, IPv6 and netlink (for getifaddrs, ss, sudo's audit record). Not uevent: the
 * kernel reports the machine's devices to every network namespace that the machine owns. */
static int refuse_socket_families(scmp_filter_ctx f)
{
    static const uint64_t netlink_kept[] = {0 /* route */, 4 /* sock_diag */, 9 /* audit */};
    int bad = seccomp_rule_add(f, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                               SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
    for (uint64_t family = AF_INET + 1; family < AF_NETLINK; family++)
        if (family != AF_INET6)
            bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                    SCMP_A0(SCMP_CMP_EQ, family));
    bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
                            SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_GT, 15));
    for (uint64_t protocol = 0; protocol <= 15; protocol++) {
        bool kept = false;
        for (size_t i = 0; i < SILT_COUNT(netlink_kept); i++)
            kept = kept || netlink_kept[i] == protocol;
        if (!kept)
            bad |=
                seccomp_rule_add(f, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
                                 SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, protocol));
    }
    return bad;
}

/* The core limit stays 1 (see rlimit.c): at 0 the machine's core helper would run again. A program
 * that disables its own dumps gets success, since it has no dumps. */
static int keep_core_limit(scmp_filter_ctx f)
{
    int bad = seccomp_rule_add(f, SCMP_ACT_ERRNO(0), SCMP_SYS(setrlimit), 1,
                               SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, RLIMIT_CORE));
    bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(0), SCMP_SYS(prlimit64), 3,
                            SCMP_A1(SCMP_CMP_MASKED_EQ, LOW, RLIMIT_CORE), SCMP_A2(SCMP_CMP_NE, 0),
                            SCMP_A3(SCMP_CMP_EQ, 0));
    bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 3,
                            SCMP_A1(SCMP_CMP_MASKED_EQ, LOW, RLIMIT_CORE), SCMP_A2(SCMP_CMP_NE, 0),
                            SCMP_A3(SCMP_CMP_NE, 0));
    return bad;
}

/* silt-init is outside the guest's memory group and bounded by its own limits (rlimit.c), which any
 * process with its ids could raise. Inside a sandbox, PID 1 is always silt-init: pid namespaces
 * cannot be created. */
static int keep_limits_of_init(scmp_filter_ctx f)
{
    if (silt_without("init_limits"))
        return 0;
    return seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 2,
                            SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, 1), SCMP_A2(SCMP_CMP_NE, 0));
}

static int refuse_rows(scmp_filter_ctx f)
{
    int bad = 0;
    for (size_t i = 0; i < SILT_COUNT(rows); i++) {
        const char *name = switches[rows[i].group];
        if (rows[i].call < 0 || (name != NULL && silt_without(name)))
            continue; /* negative: not on this architecture */
        bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO((uint32_t)rows[i].answer), rows[i].call, 0);
    }
    return bad;
}

/* Other ABIs (32-bit calls, x32 numbers) are refused completely: no image needs them. */
static int fill(scmp_filter_ctx f, bool clone3_stays)
{
    int bad = seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    bad |= seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH,
                            silt_without("abi") ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(ENOSYS));
    bad |= refuse_rows(f);
    bad |= refuse_namespaces(f);
    bad |= refuse_tty_tricks(f);
    bad |= refuse_socket_families(f);
    bad |= refuse_variants_of_tcp(f);
    bad |= keep_core_limit(f);
    bad |= keep_limits_of_init(f);
    if (!clone3_stays)
        bad |= seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    return bad;
}

/* Jumps are relative, so instructions may be prepended to libseccomp's program. x32 numbers (bit
 * 30) are left to the rest of it. */
static const struct sock_filter ceiling[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NR_KNOWN_MAX, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
};

static int read_program(int fd, struct silt_seccomp *s, struct silt_error *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return silt_fail_errno(e, "look at the compiled filter");
    size_t body = (size_t)st.st_size;
    size_t count = SILT_COUNT(ceiling) + body / sizeof(struct sock_filter);
    if (count > BPF_MAXINSNS)
        return silt_fail(e, SILT_INTERNAL, "filter of %zu instructions, at most %d", count,
                         BPF_MAXINSNS);
    struct sock_filter *code = malloc(count * sizeof(*code));
    if (code == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for the filter");
    memcpy(code, ceiling, sizeof(ceiling));
    if (pread(fd, code + SILT_COUNT(ceiling), body, 0) != (ssize_t)body) {
        free(code);
        return silt_fail(e, SILT_INTERNAL, "read the compiled filter");
    }
    s->program = (struct sock_fprog){.len = (unsigned short)count, .filter = code};
    return 0;
}

int silt_seccomp_compile(struct silt_seccomp *s, bool clone3_stays, struct silt_error *e)
{
    silt_auto_fd fd = memfd_create("filter", MFD_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "make room for the filter");
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
    if (f == NULL)
        return silt_fail(e, SILT_UNAVAILABLE, "start libseccomp");
    int bad = fill(f, clone3_stays);
    if (bad == 0)
        bad = seccomp_export_bpf(f, fd);
    seccomp_release(f);
    if (bad != 0)
        return silt_fail(e, SILT_UNAVAILABLE, "compile the system call filter: error %d", bad);
    return read_program(fd, s, e);
}

void silt_seccomp_fini(struct silt_seccomp *s)
{
    free(s->program.filter);
    s->program = (struct sock_fprog){0};
}

int silt_seccomp_load(const struct silt_seccomp *s, struct silt_error *e)
{
    if (silt_without("seccomp"))
        return 0;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &s->program) < 0)
        return silt_fail_errno(e, "load the system call filter");
    return 0;
}
