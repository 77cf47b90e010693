/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/launch.h"
#include "base/fd.h"
#include "engine/launch/launch_child.h"
#include "engine/core/sync.h"
#include "engine/launch/test_holes.h"
#include "engine/core/userns.h"
#include "engine/storage/volume.h"
#include "base/test_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* Capabilities must not follow the effective uid: it changes for the duration of a clone. */
int silt_launch_prepare(struct silt_error *e)
{
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0)
        return silt_fail_errno(e, "set securebits");
    if (signal(SIGCHLD, SIG_IGN) == SIG_ERR)
        return silt_fail_errno(e, "ignore SIGCHLD");
    return 0;
}

/* The sandbox's boot clocks start with it. The time namespace applies to children created from now
 * on; the next launch creates the next one. */
static int begin_time(struct silt_error *e)
{
    struct timespec up, mono;
    char text[128];
    if (silt_without("infoleaks"))
        return 0;
    /* before Linux 5.6 */
    if (unshare(CLONE_NEWTIME) < 0)
        return errno == EINVAL ? 0 : silt_fail_errno(e, "make a time namespace");
    if (clock_gettime(CLOCK_BOOTTIME, &up) < 0 || clock_gettime(CLOCK_MONOTONIC, &mono) < 0)
        return silt_fail_errno(e, "read the clocks");
    (void)snprintf(text, sizeof(text), "monotonic -%lld 0\nboottime -%lld 0\n",
                   (long long)mono.tv_sec, (long long)up.tv_sec);
    return silt_fd_put(AT_FDCWD, "/proc/self/timens_offsets", text, e);
}

static uint64_t clone_flags(const struct silt_launch *l)
{
    uint64_t flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_PIDFD;
    if (!silt_without("pidns"))
        flags |= CLONE_NEWPID;
    if (!silt_without("uts"))
        flags |= CLONE_NEWUTS;
    if (l->birth->into >= 0)
        flags |= CLONE_INTO_CGROUP;
    return flags;
}

/* A user namespace belongs to its creator: created by the range's first uid, each sandbox has its
 * own inotify and namespace counters. Raw system calls: the glibc wrappers would synchronize all
 * threads, and there is one. */
static long clone_as(uint32_t owner, struct clone_args *args)
{
    if (syscall(SYS_setresuid, -1, owner, -1) < 0)
        return -1;
    long pid = syscall(SYS_clone3, args, sizeof(*args));
    if (pid == 0)
        return 0;
    int saved = errno;
    if (syscall(SYS_setresuid, -1, 0, -1) < 0)
        abort(); /* never continue with the wrong effective uid */
    errno = saved;
    return pid;
}

static int start_child(const struct silt_launch *l, const int pair[2], pid_t *ret_pid,
                       int *ret_pidfd, struct silt_error *e)
{
    int pidfd = -1;
    struct clone_args args = {
        .flags = clone_flags(l),
        .pidfd = (uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };
    if (l->birth->into >= 0)
        args.cgroup = (unsigned)l->birth->into;
    if (!silt_without("netns") && setns(l->net->ns, CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "enter the network namespace");
    long pid = clone_as(l->ids, &args);
    if (pid == 0)
        silt_launch_child(l, pair);
    int saved = errno;
    if (setns(l->home_net, CLONE_NEWNET) < 0)
        abort(); /* likewise */
    errno = saved;
    if (pid < 0)
        return silt_fail_errno(e, "clone");
    *ret_pid = (pid_t)pid;
    *ret_pidfd = pidfd;
    return 0;
}

static int release_child(const struct silt_launch *l, pid_t pid, int sync, struct silt_error *e)
{
    struct silt_userns_map map = {.inside = 0, .outside = l->ids, .count = SILT_SLOT_IDS};
    if (silt_userns_write_maps(pid, map, e) < 0)
        return -1;
    silt_first_pids_set(l->pids, l->slot, pid);
    return silt_sync_tell(sync, SYNC_IDS_MAPPED, e);
}

static int launch(const struct silt_launch *l, int *ret_pidfd, struct silt_error *e)
{
    int pair[2];
    pid_t pid;
    silt_auto_fd pidfd = -1;
    if (begin_time(e) < 0)
        return -1;
    if (silt_sync_open(pair, e) < 0)
        return -1;
    silt_auto_fd ours = pair[0], theirs = pair[1];
    if (start_child(l, pair, &pid, &pidfd, e) < 0)
        return -1;
    silt_close_fd(&theirs);
    if (release_child(l, pid, ours, e) < 0 || silt_sync_await_exec(ours, pidfd, e) < 0) {
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
        return -1;
    }
    *ret_pidfd = silt_take_fd(&pidfd);
    return 0;
}

int silt_launch(const struct silt_launch *l, int *ret_pidfd, struct silt_error *e)
{
    if (!silt_without("proc_exe"))
        return launch(l, ret_pidfd, e);
    silt_auto_fd init = -1;
    struct silt_launch other = *l;
    if (silt_test_holes_program(l->init, l->ids, &init, e) < 0)
        return -1;
    other.init = init;
    return launch(&other, ret_pidfd, e);
}

static int fill_copy(int to, const char *path, struct silt_error *e)
{
    silt_auto_fd from = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (from < 0 || fstat(from, &st) < 0)
        return silt_fail_errno(e, "open %s", path);
    for (off_t done = 0; done < st.st_size;) {
        ssize_t n = sendfile(to, from, NULL, (size_t)(st.st_size - done));
        if (n <= 0)
            return silt_fail_read(e, n, "copy %s", path);
        done += n;
    }
    return 0;
}

/* Execute-only: a program that its own process may not read makes that process undumpable, so the
 * guest can neither trace PID 1 nor inspect its /proc entries (fs/exec.c, would_dump). Reopened by
 * name: exec refuses a file that is open for writing. */
int silt_launch_copy_program(const char *path, int *ret_fd, struct silt_error *e)
{
    silt_auto_fd copy = memfd_create("silt-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (copy < 0 && errno == EINVAL)
        copy = memfd_create("silt-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (copy < 0)
        return silt_fail_errno(e, "make room for a copy of %s", path);
    if (fill_copy(copy, path, e) < 0)
        return -1;
    if (fchmod(copy, 0111) < 0
        || fcntl(copy, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return silt_fail_errno(e, "seal the copy of %s", path);
    char again[32];
    (void)snprintf(again, sizeof(again), "/proc/self/fd/%d", copy);
    int fd = open(again, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open the copy of %s", path);
    *ret_fd = fd;
    return 0;
}
