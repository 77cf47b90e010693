/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/seccomp.h"
#include "unit/base/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct call {
    long number, a, b, c, d;
};

/* The errno of one call under the filter, in a child. */
static int answer(const struct silt_seccomp *s, struct call k)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct silt_error e;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || silt_seccomp_load(s, &e) < 0)
            _exit(250);
        long got = syscall(k.number, k.a, k.b, k.c, k.d, 0L, 0L);
        _exit(got < 0 ? errno : 0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(blocked_calls_answer_whatever_their_arguments_are)
{
    struct silt_seccomp s;
    struct silt_error e;
    assert_int_equal(silt_seccomp_compile(&s, false, &e), 0);
    static const long blocked[] = {SYS_mount,       SYS_setns,           SYS_bpf,
                                   SYS_keyctl,      SYS_kexec_load,      SYS_reboot,
                                   SYS_init_module, SYS_perf_event_open, SYS_userfaultfd,
                                   SYS_syslog};
    for (size_t i = 0; i < sizeof(blocked) / sizeof(blocked[0]); i++)
        assert_int_equal(answer(&s, (struct call){blocked[i], -1, -1, -1, -1}), EPERM);
    assert_int_equal(answer(&s, (struct call){SYS_clone3, 0, 0, 0, 0}), ENOSYS);
    assert_int_equal(answer(&s, (struct call){SYS_io_uring_setup, 1, 0, 0, 0}), ENOSYS);
    assert_int_equal(answer(&s, (struct call){SYS_getpid, 0, 0, 0, 0}), 0);
    silt_seccomp_fini(&s);
}

TEST(sockets_are_of_plain_protocols)
{
    enum { MPTCP = 262, SMC = 256 };
    struct silt_seccomp s;
    struct silt_error e;
    assert_int_equal(silt_seccomp_compile(&s, false, &e), 0);
    assert_int_equal(answer(&s, (struct call){SYS_socket, AF_INET, SOCK_STREAM, 0, 0}), 0);
    assert_int_equal(answer(&s, (struct call){SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_TCP, 0}),
                     0);
    assert_int_equal(answer(&s, (struct call){SYS_socket, AF_INET, SOCK_STREAM, MPTCP, 0}),
                     EPROTONOSUPPORT);
    assert_int_equal(answer(&s, (struct call){SYS_socket, AF_INET6, SOCK_STREAM, MPTCP, 0}),
                     EPROTONOSUPPORT);
    assert_int_equal(
        answer(&s, (struct call){SYS_socket, AF_INET, SOCK_STREAM, (1L << 32) | MPTCP, 0}),
        EPROTONOSUPPORT);
    assert_int_equal(answer(&s, (struct call){SYS_socket, AF_INET, SOCK_STREAM, SMC, 0}),
                     EPROTONOSUPPORT);
    silt_seccomp_fini(&s);
}

TEST(unknown_numbers_and_other_abis_do_not_exist)
{
    struct silt_seccomp s;
    struct silt_error e;
    assert_int_equal(silt_seccomp_compile(&s, false, &e), 0);
    assert_int_equal(answer(&s, (struct call){600, 0, 0, 0, 0}), ENOSYS);
    assert_int_equal(answer(&s, (struct call){470, 0, 0, 0, 0}), ENOSYS);
    assert_int_equal(answer(&s, (struct call){0x40000000 + 39, 0, 0, 0, 0}),
                     ENOSYS); /* x32 getpid */
    silt_seccomp_fini(&s);
}

TEST(new_namespaces_are_refused_and_other_uses_of_the_calls_are_not)
{
    struct silt_seccomp s;
    struct silt_error e;
    assert_int_equal(silt_seccomp_compile(&s, false, &e), 0);
    static const long flags[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWPID, 0x80};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        assert_int_equal(answer(&s, (struct call){SYS_unshare, flags[i] | CLONE_FS, 0, 0, 0}),
                         EPERM);
    assert_int_equal(answer(&s, (struct call){SYS_clone, CLONE_NEWUSER | 17, 0, 0, 0}), EPERM);
    assert_int_equal(answer(&s, (struct call){SYS_unshare, CLONE_FS, 0, 0, 0}), 0);
    silt_seccomp_fini(&s);
}

TEST(terminal_tricks_are_refused_also_with_bits_that_the_kernel_ignores)
{
    struct silt_seccomp s;
    struct silt_error e;
    assert_int_equal(silt_seccomp_compile(&s, false, &e), 0);
    assert_int_equal(answer(&s, (struct call){SYS_ioctl, -1, TIOCSTI, 0, 0}), EPERM);
    assert_int_equal(answer(&s, (struct call){SYS_ioctl, -1, TIOCSTI | 1L << 32, 0, 0}), EPERM);
    assert_int_equal(answer(&s, (struct call){SYS_ioctl, -1, TIOCGWINSZ, 0, 0}), EBADF);
    silt_seccomp_fini(&s);
}

TEST(the_core_limit_cannot_be_lowered_and_nobody_notices)
{
    struct silt_seccomp s;
    struct silt_error e;
    struct rlimit none = {0, 0};
    assert_int_equal(silt_seccomp_compile(&s, false, &e), 0);
    assert_int_equal(
        answer(&s, (struct call){SYS_prlimit64, 0, RLIMIT_CORE, (long)(intptr_t)&none, 0}), 0);
    assert_int_equal(answer(&s, (struct call){SYS_prlimit64, 0, RLIMIT_CORE, (long)(intptr_t)&none,
                                              (long)(intptr_t)&none}),
                     EPERM);
    assert_int_equal(
        answer(&s, (struct call){SYS_prlimit64, 0, RLIMIT_CORE, 0, (long)(intptr_t)&none}), 0);
    silt_seccomp_fini(&s);
}

TEST(clone3_stays_where_silt_init_needs_it)
{
    struct silt_seccomp s;
    struct silt_error e;
    assert_int_equal(silt_seccomp_compile(&s, true, &e), 0);
    assert_int_equal(answer(&s, (struct call){SYS_clone3, 0, 0, 0, 0}), EINVAL);
    silt_seccomp_fini(&s);
}
