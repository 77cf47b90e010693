/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/confine.h"
#include "unit/base/unit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAST_CALL = 470, ALLOWED = 70 }; /* ALLOWED: SECURITY.md tells the number */

struct call {
    long number, a, b, c;
};

/* rt_sigreturn takes its registers from whatever the stack holds and ends in a fault: a sanitizer's
 * handler would turn that into exit status 1, which is EPERM. */
static void reset_signals(void)
{
    static const int signals[] = {SIGALRM, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        (void)signal(signals[i], SIG_DFL);
}

/* The errno of one call under the filter, 0, or 250 and the signal that ended the child. */
static int answer(struct call k)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct silt_error e;
        reset_signals();
        (void)alarm(60); /* one that waits for ever is a failure */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || silt_confine(&e) < 0)
            _exit(249);
        errno = 0;
        long got = syscall(k.number, k.a, k.b, k.c, 0L, 0L, 0L);
        _exit(got < 0 ? errno : 0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 250;
}

/* With arguments that every call refuses, or takes without harm: nothing but the filter says EPERM.
 */
TEST(all_but_the_list_is_refused)
{
    int passed = 0;
    for (long n = 0; n <= LAST_CALL; n++) {
        if (n == 335 || n == 336)
            continue; /* uretprobe, uprobe: the kernel shows them to no filter, and nobody else has
                         a use for them */
        passed += answer((struct call){n, -1, 0, 0}) != EPERM;
    }
    /* socketpair and ioctl are refused with such arguments. */
    assert_int_equal(passed, ALLOWED - 2);
    assert_int_equal(answer((struct call){SYS_openat, -1, 0, 0}), EFAULT);
}

TEST(no_program_process_or_thread_begins)
{
    static const long calls[] = {SYS_execve, SYS_execveat, SYS_fork, SYS_vfork,
                                 SYS_clone3, SYS_ptrace,   SYS_prctl};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        assert_int_equal(answer((struct call){calls[i], 0, 0, 0}), EPERM);
    assert_int_equal(
        answer((struct call){SYS_clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, 0, 0}), EPERM);
    assert_int_equal(answer((struct call){SYS_clone, SIGCHLD, 0, 0}), EPERM);
}

TEST(no_memory_becomes_executable)
{
    assert_int_equal(answer((struct call){SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC}), EPERM);
    assert_int_equal(
        answer((struct call){SYS_mprotect, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC}), EPERM);
    assert_int_equal(answer((struct call){SYS_mprotect, 0, 0, PROT_READ}), 0);
}

TEST(no_socket_is_made_but_local_pairs)
{
    static int pair[2];
    assert_int_equal(answer((struct call){SYS_socket, AF_UNIX, SOCK_STREAM, 0}), EPERM);
    assert_int_equal(answer((struct call){SYS_socket, AF_INET, SOCK_STREAM, 0}), EPERM);
    assert_int_equal(answer((struct call){SYS_connect, -1, 0, 0}), EPERM);
    assert_int_equal(answer((struct call){SYS_bind, -1, 0, 0}), EPERM);
    assert_int_equal(answer((struct call){SYS_socketpair, AF_INET, SOCK_STREAM, 0}), EPERM);
    long at = (long)(intptr_t)pair;
    pid_t pid = fork();
    if (pid == 0) {
        struct silt_error e;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || silt_confine(&e) < 0)
            _exit(1);
        _exit(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, at) == 0 ? 0 : 2);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

TEST(no_ioctl_but_those_of_process_descriptors)
{
    assert_int_equal(answer((struct call){SYS_ioctl, -1, 0x5412 /* TIOCSTI */, 0}), EPERM);
    assert_int_equal(answer((struct call){SYS_ioctl, -1, 0xff0b, 0}), EBADF);
}

/* abort() is a way to end that must stay, with its signal. */
TEST(a_failed_assertion_ends_the_process_with_sigabrt)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct silt_error e;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || silt_confine(&e) < 0)
            _exit(1);
        abort();
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
