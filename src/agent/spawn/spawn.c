/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/spawn.h"
#include "agent/spawn/spawn_child.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first size of struct clone_args that has `cgroup`. */
enum { CLONE_ARGS_WITH_CGROUP = 88 };

void silt_limits_take(struct silt_limits *l, pid_t pid)
{
    l->known = 0;
    /* The core limit is fixed by the engine and not changed. */
    for (int what = 0; what < RLIM_NLIMITS; what++)
        if (what != (int)RLIMIT_CORE
            && syscall(SYS_prlimit64, pid, what, NULL, &l->list[what]) == 0)
            l->known |= 1U << what;
}

/* 480 for handles, four per exec, five per session, a few dozen of our own. */
enum { FILES = 4096 };
static rlim_t files_at_birth;

void silt_limits_raise_files(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= FILES)
        return;
    files_at_birth = l.rlim_cur;
    l.rlim_cur = l.rlim_max < FILES ? l.rlim_max : FILES;
    (void)setrlimit(RLIMIT_NOFILE, &l);
}

void silt_limits_lower_files(void)
{
    struct rlimit l;
    if (files_at_birth == 0 || getrlimit(RLIMIT_NOFILE, &l) < 0)
        return;
    l.rlim_cur = files_at_birth;
    (void)setrlimit(RLIMIT_NOFILE, &l);
}

static void close_report(struct silt_launch *l)
{
    silt_loop_forget(l->loop, &l->report);
    silt_close_fd(&l->report.fd);
}

/* End-of-file means that the program runs. */
static void read_report(struct silt_launch *l)
{
    struct silt_spawn_report r;
    ssize_t n = read(l->report.fd, &r, sizeof(r));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    close_report(l);
    if (n == 0) {
        l->on_started(l);
        return;
    }
    if (n != (ssize_t)sizeof(r)) {
        r.no_dir = false;
        (void)silt_fail(&r.error, SILT_INTERNAL, "start a process: it broke off");
    }
    silt_child_forget(&l->child);
    l->on_failed(l, r.no_dir, &r.error);
}

static void on_report(struct silt_watch *w, uint32_t events)
{
    (void)events;
    read_report(silt_outer(w, struct silt_launch, report));
}

static void on_child_exit(struct silt_child *c, int status)
{
    struct silt_launch *l = silt_outer(c, struct silt_launch, child);
    if (l->report.fd >= 0) {
        bool failed = false;
        struct silt_spawn_report r;
        failed = read(l->report.fd, &r, sizeof(r)) == (ssize_t)sizeof(r);
        close_report(l);
        if (failed) {
            l->on_failed(l, r.no_dir, &r.error);
            return;
        }
        l->on_started(l);
    }
    l->on_exited(l, status);
}

/* Linux 6.14 and later (seen with 6.18) compare a child that is cloned into a group with its
 * parent's group to detect a kill in between: if the child's group was ever killed, so is the
 * child. Such a group is entered after the fork. */
static pid_t fork_into(const struct silt_handle *h, bool *ret_entered)
{
    *ret_entered = false;
    if (h->mode == 2 && !h->killed) {
        struct clone_args args = {
            .flags = CLONE_INTO_CGROUP,
            .exit_signal = SIGCHLD,
            .cgroup = (__u64)h->fds[0],
        };
        long pid = syscall(SYS_clone3, &args, CLONE_ARGS_WITH_CGROUP);
        if (pid >= 0 || errno != ENOSYS) {
            *ret_entered = true;
            return (pid_t)pid;
        }
    }
    return fork();
}

int silt_launch_start(struct silt_launch *l, const struct silt_spawn *s, struct silt_error *e)
{
    int report[2];
    bool entered;
    l->report.fd = -1;
    l->child.pid = 0;
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
        return silt_fail_errno(e, "create a pipe");
    pid_t pid = fork_into(s->handle, &entered);
    if (pid == 0)
        silt_spawn_child(s, entered, report[1]);
    (void)close(report[1]);
    if (pid < 0) {
        int sys = errno;
        (void)close(report[0]);
        errno = sys;
        return silt_fail_errno(e, "start a process");
    }
    l->child.pid = pid;
    l->child.on_exited = on_child_exit;
    silt_child_add(l->children, &l->child);
    l->report = (struct silt_watch){.fd = report[0], .on_ready = on_report};
    silt_loop_watch(l->loop, &l->report, EPOLLIN);
    return 0;
}

void silt_launch_adopt(struct silt_launch *l, pid_t pid)
{
    l->child = (struct silt_child){.pid = pid, .on_exited = on_child_exit};
    silt_child_add(l->children, &l->child);
}

void silt_launch_take(struct silt_launch *to, struct silt_launch *from)
{
    assert(from->report.fd < 0 && to->report.fd < 0);
    pid_t pid = from->child.pid;
    silt_child_forget(&from->child);
    silt_launch_adopt(to, pid);
}

void silt_launch_forget(struct silt_launch *l)
{
    if (l->report.fd >= 0 && l->loop != NULL)
        close_report(l);
    silt_child_forget(&l->child);
}
