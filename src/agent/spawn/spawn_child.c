/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/spawn_child.h"
#include "agent/spawn/proc.h"
#include "agent/spawn/program.h"
#include "agent/spawn/user.h"
#include "agent/spawn/test_holes.h"
#include "base/fs_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REPORT_FD = STDERR_FILENO + 1 + SILT_SPAWN_EXTRA };

static int join(const struct silt_spawn *s, bool entered, struct silt_error *e)
{
    for (size_t i = 0; i < s->joins->count; i++)
        if (write(s->joins->fds[i], "0", 1) != 1)
            return silt_fail_errno(e, "enter the sandbox's groups");
    if (!entered && silt_handle_enter(s->handle) < 0)
        return silt_fail_errno(e, "enter the handle's group");
    return 0;
}

static void set_limits(const struct silt_limits *limits)
{
    struct rlimit l;
    for (int what = 0; limits != NULL && what < RLIM_NLIMITS; what++)
        if (limits->known >> what & 1)
            (void)syscall(SYS_prlimit64, 0, what, &limits->list[what], NULL);
    if (limits != NULL)
        return;
    silt_limits_lower_files();
    if (getrlimit(RLIMIT_DATA, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(RLIMIT_DATA, &l);
    }
}

static void set_signals(const struct silt_spawn *s)
{
    sigset_t none;
    /* Bit n-1 stands for signal n. */
    uint64_t ignored = s->like > 0 ? silt_proc_status(s->like, "SigIgn:", 16) : 0;
    if (s->background)
        ignored |= 1ULL << (SIGINT - 1) | 1ULL << (SIGQUIT - 1);
    for (int n = 1; n <= 64; n++)
        if (ignored >> (n - 1) & 1)
            (void)signal(n, SIG_IGN);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* After this only the report is open: neither the program nor a directory like /proc/self/fd/9
 * chosen by the client may lead to a descriptor of ours. The descriptors we pass on have numbers
 * above 6 (agent.c ensures that), so none is overwritten before it is moved. */
static int set_descriptors(const struct silt_spawn *s, int *report, struct silt_error *e)
{
    const int from[REPORT_FD] = {s->in,       s->out,      s->err,     s->extra[0],
                                 s->extra[1], s->extra[2], s->extra[3]};
    unsigned last = silt_without("close_fds") ? SILT_UNSAFE_FD - 1 : ~0U;
    for (int i = 0; i < REPORT_FD; i++) {
        if (from[i] >= 0 && dup2(from[i], i) < 0)
            return silt_fail_errno(e, "hand over descriptor %d", i);
        if (from[i] < 0 && i > STDERR_FILENO)
            (void)close(i);
    }
    if (*report != REPORT_FD && dup3(*report, REPORT_FD, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "keep the report");
    *report = REPORT_FD;
    if (syscall(SYS_close_range, REPORT_FD + 1U, last, 0) < 0)
        return silt_fail_errno(e, "close descriptors");
    return 0;
}

/* The kernel's path of a directory outside our root does not start with a slash. (The library's
 * getcwd turns that into an error.) A removed directory has no path and was inside. */
static bool is_inside(void)
{
    char path[PATH_MAX] = "/";
    if (silt_without("close_fds"))
        return true;
    return syscall(SYS_getcwd, path, sizeof(path)) < 0 ? errno == ENOENT : path[0] == '/';
}

static int enter_dir(const struct silt_spawn *s, struct silt_error *e)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/%d/cwd", (int)s->like);
    if (s->like > 0 && chdir(path) == 0 && is_inside())
        return 0;
    for (size_t i = 0; i < SILT_SPAWN_DIRS && s->dirs[i] != NULL; i++)
        if (chdir(s->dirs[i]) == 0 && is_inside())
            return 0;
    return silt_fail(e, SILT_NOT_FOUND, "Failed to change directory to '%s'",
                     s->like > 0 ? path : s->dirs[0]);
}

static int probe_dir(const char *path, struct silt_error *e)
{
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (chdir(path) < 0 || !is_inside())
        return silt_fail(e, SILT_NOT_FOUND, "Failed to change directory to '%s'", path);
    return here >= 0 && fchdir(here) == 0 ? 0 : silt_fail_errno(e, "return to a directory");
}

static int prepare(const struct silt_spawn *s, bool entered, int *report,
                   struct silt_spawn_report *r)
{
    if (join(s, entered, &r->error) < 0)
        return -1;
    (void)setsid();
    set_limits(s->limits);
    set_signals(s);
    if (set_descriptors(s, report, &r->error) < 0)
        return -1;
    if (s->terminal && ioctl(STDOUT_FILENO, TIOCSCTTY, 0) < 0) {
        (void)silt_fail_errno(&r->error, "take control of a terminal");
        return -1;
    }
    r->no_dir =
        enter_dir(s, &r->error) < 0 || (s->probe != NULL && probe_dir(s->probe, &r->error) < 0);
    return r->no_dir ? -1 : 0;
}

/* Pipes and terminals are created as root's: the user must be able to reopen them by their names in
 * the kernel (/dev/stdout). Pipes made by siltd have no owner here, and are open to all. A
 * terminal's group stays, as everywhere. */
static int give_streams(const struct silt_spawn *s, const struct silt_user *u, struct silt_error *e)
{
    struct stat st;
    for (int fd = 0; fd < REPORT_FD; fd++)
        if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && st.st_uid == 0
            && fchown(fd, u->uid, u->gid) < 0)
            return silt_fail_errno(e, "become user %u:%u", (unsigned)u->uid, (unsigned)u->gid);
    if (s->terminal && fchown(STDOUT_FILENO, u->uid, (gid_t)-1) < 0)
        return silt_fail_errno(e, "give a terminal to user %u", (unsigned)u->uid);
    return 0;
}

/* Last, because it drops our privileges. */
static int change_user(const struct silt_spawn *s, char *const **envp, struct silt_error *e)
{
    static struct silt_user user;
    if (s->user == NULL)
        return 0;
    if (silt_user_look_up(s->user, &user, e) < 0 || give_streams(s, &user, e) < 0)
        return -1;
    if (s->loads_state && silt_user_put(&user, STDERR_FILENO + 1, e) < 0)
        return -1;
    if (!s->loads_state)
        *envp = silt_user_envp(&user, s->envp);
    return silt_user_become(&user, e);
}

/* Files stay accessible whatever happened to /etc/passwd. */
static void lend_name(const struct silt_spawn *s)
{
    static struct silt_user user;
    struct silt_error e;
    if (s->user != NULL && silt_user_look_up(s->user, &user, &e) == 0)
        (void)silt_fs_identity_be((struct silt_fs_identity){user.uid, user.gid}, &e);
}

static _Noreturn void run_function(const struct silt_spawn *s, int report)
{
    lend_name(s);
    (void)close(report);
    s->run(STDIN_FILENO);
    _exit(0);
}

static void run_program(const struct silt_spawn *s, struct silt_error *e)
{
    char *const *envp = s->envp;
    if (change_user(s, &envp, e) < 0)
        return;
    if (s->path == NULL) {
        silt_program_exec(s->argv, envp, e);
        return;
    }
    (void)execve(s->path, s->argv, envp);
    (void)silt_fail_errno(e, "start %s", s->path);
}

_Noreturn void silt_spawn_child(const struct silt_spawn *s, bool entered, int report)
{
    struct silt_spawn_report r = {0};
    if (prepare(s, entered, &report, &r) == 0) {
        if (s->run != NULL)
            run_function(s, report);
        else
            run_program(s, &r.error);
    }
    if (write(report, &r, sizeof(r)) < 0)
        _exit(126);
    _exit(127);
}
