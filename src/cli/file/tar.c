/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/file/tar.h"
#include "base/own.h"
#include "cli/core/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
    BLOCK = 512,
    DIRECTORIES_OPEN = 32,
    PIPE_SIZE = 1 << 20,
    CHANGED = 1,  /* exit status: files changed while tar read them */
    NO_TAR = 127, /* exit status */
};

/* After fork. */
__attribute__((noreturn)) static void run(const char *directory, int fd, bool unpack)
{
    silt_wait_leave_interrupt();
    (void)signal(SIGPIPE, SIG_DFL);
    (void)prctl(PR_CAPBSET_DROP,
                CAP_MKNOD); /* fails without privileges, which leaves nothing to drop */
    if (dup2(fd, unpack ? STDIN_FILENO : STDOUT_FILENO) < 0)
        _exit(NO_TAR);
    if (unpack)
        (void)execlp("tar", "tar", "--extract", "--file=-", "--no-same-owner",
                     "--no-same-permissions", "-C", directory, (char *)NULL);
    else
        (void)execlp("tar", "tar", "--create", "--file=-", "--numeric-owner", "--owner=0",
                     "--group=0", "-C", directory, ".", (char *)NULL);
    _exit(NO_TAR);
}

static int start(struct silt_tar *t, const char *directory, bool unpack, struct silt_error *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "make a pipe");
    silt_auto_fd theirs = ends[unpack ? 0 : 1], ours = ends[unpack ? 1 : 0];
    (void)fcntl(ours, F_SETPIPE_SZ, PIPE_SIZE); /* a smaller pipe is only slower */
    (void)signal(SIGPIPE, SIG_IGN); /* a tar that gives up says why; dying of SIGPIPE would not */
    pid_t pid = fork();
    if (pid < 0)
        return silt_fail_errno(e, "fork");
    if (pid == 0)
        run(directory, theirs, unpack);
    *t = (struct silt_tar){.pid = pid, .fd = silt_take_fd(&ours), .directory = directory};
    return 0;
}

int silt_tar_pack(struct silt_tar *t, const char *directory, struct silt_error *e)
{
    return start(t, directory, false, e);
}

int silt_tar_unpack(struct silt_tar *t, const char *directory, struct silt_error *e)
{
    return start(t, directory, true, e);
}

int silt_tar_end(struct silt_tar *t, struct silt_error *e)
{
    int status;
    silt_close_fd(&t->fd);
    while (waitpid(t->pid, &status, 0) < 0)
        if (errno != EINTR)
            return silt_fail_errno(e, "wait for tar");
    if (status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == CHANGED))
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_TAR)
        return silt_fail(e, SILT_UNAVAILABLE, "no tar program\nInstall it: apt-get install tar");
    return silt_fail(e, SILT_INTERNAL, "tar stopped at a part of directory %s", t->directory);
}

static uint64_t total;

static int add_size(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)path;
    (void)at;
    uint64_t size = type == FTW_F && st->st_size > 0 ? (uint64_t)st->st_size : 0;
    total += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
    return 0;
}

uint64_t silt_tar_size(const char *directory)
{
    total = 0;
    (void)nftw(directory, add_size, DIRECTORIES_OPEN, FTW_PHYS);
    return total;
}
