/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/nft.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { ANSWER_MS = 20000, KILLED = 126 };

static _Noreturn void be_nft(int in, int out)
{
    char *env[] = {(char[]){"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, NULL};
    char *args[] = {(char[]){"nft"}, (char[]){"-f"}, (char[]){"-"}, NULL};
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0
        && dup2(out, STDERR_FILENO) >= 0)
        (void)execvpe("nft", args, env);
    _exit(127);
}

/* The kernel reaps a worker's children and discards their exit status. So an intermediate process,
 * which the kernel does not reap (its exit signal is 0), starts nft and waits for it. */
static _Noreturn void attend_nft(int in, int out)
{
    int status = 0;
    (void)signal(SIGCHLD, SIG_DFL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        be_nft(in, out);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : KILLED);
}

static pid_t start_nft(int in, int out)
{
    pid_t pid = (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL);
    if (pid == 0)
        attend_nft(in, out);
    return pid;
}

/* It takes some milliseconds, unless the kernel is busy. */
static int await(pid_t pid, int *ret_status, struct silt_error *e)
{
    silt_auto_fd end = pidfd_open(pid, 0);
    struct pollfd p = {.fd = end, .events = POLLIN};
    int64_t until = silt_clock_ms() + ANSWER_MS, left = ANSWER_MS;
    while (end >= 0 && left > 0 && poll(&p, 1, (int)left) < 0 && errno == EINTR)
        left = until - silt_clock_ms();
    if (p.revents == 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, ret_status, __WALL) < 0)
        if (errno != EINTR)
            return silt_fail_errno(e, "wait for nft");
    return 0;
}

/* Its first line is the most useful. */
static int fail_refused(int said, int status, struct silt_error *e)
{
    char text[256];
    ssize_t n = pread(said, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    return silt_fail(e, SILT_INTERNAL, "nft ended with status 0x%x: %s", (unsigned)status, text);
}

int silt_nft_load(silt_slice text, struct silt_error *e)
{
    silt_auto_fd in = memfd_create("rules", MFD_CLOEXEC);
    silt_auto_fd out = memfd_create("nft", MFD_CLOEXEC);
    int status = 0;
    if (in < 0 || out < 0)
        return silt_fail_errno(e, "make files for nft");
    if (silt_fd_write_all(in, text, e) < 0)
        return -1;
    if (lseek(in, 0, SEEK_SET) < 0)
        return silt_fail_errno(e, "rewind the rules");
    pid_t pid = start_nft(in, out);
    if (pid < 0)
        return silt_fail_errno(e, "fork for nft");
    if (await(pid, &status, e) < 0)
        return -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return silt_fail(e, SILT_UNAVAILABLE, "nft is missing (package nftables)");
    return status == 0 ? 0 : fail_refused(out, status, e);
}
