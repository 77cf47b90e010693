/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/spare_shell.h"
#include "agent/exec/command.h"
#include "agent/shell/shell.h"
#include "agent/shell/state.h"
#include "base/own.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { IDLE_MS = 10000 };

static void close_all(struct silt_spare_shell *s)
{
    silt_close_fd(&s->in);
    silt_close_fd(&s->state);
    silt_close_fd(&s->script);
    silt_close_fd(&s->out);
    silt_close_fd(&s->err);
}

static void leave(struct silt_spare_shell *s)
{
    struct silt_handle *h = s->handle;
    s->handle = NULL;
    silt_loop_cancel(&s->agent->loop, &s->timer);
    silt_launch_forget(&s->launch);
    close_all(s);
    if (h != NULL)
        silt_handle_leave(&s->agent->handles, h, 0);
}

static void on_started(struct silt_launch *l)
{
    struct silt_spare_shell *s = silt_outer(l, struct silt_spare_shell, launch);
    silt_limits_take(&s->limits, l->child.pid);
}

static void on_failed(struct silt_launch *l, bool no_dir, const struct silt_error *e)
{
    (void)no_dir;
    (void)e;
    leave(silt_outer(l, struct silt_spare_shell, launch));
}

static void on_exited(struct silt_launch *l, int status)
{
    (void)status;
    leave(silt_outer(l, struct silt_spare_shell, launch));
}

void silt_spare_shell_drop(struct silt_spare_shell *s)
{
    if (s->handle == NULL || s->launch.child.pid <= 0)
        return;
    s->doomed = true;
    (void)kill(s->launch.child.pid, SIGKILL);
}

static void on_idle(struct silt_timer *t)
{
    silt_spare_shell_drop(silt_outer(t, struct silt_spare_shell, timer));
}

static int launch(struct silt_spare_shell *s, int in, int out, int err, struct silt_error *e)
{
    struct silt_spawn spawn = {
        .path = SILT_SHELL_PATH,
        .argv = silt_shell_argv(),
        .envp = silt_state_env(),
        .in = in,
        .out = out,
        .err = -1,
        .extra = {s->state, err, s->script, -1},
        .dirs = {"/"},
        .background = true,
        .handle = s->handle,
        .joins = &s->agent->joins,
    };
    s->launch = (struct silt_launch){
        .loop = &s->agent->loop,
        .children = &s->agent->children,
        .on_started = on_started,
        .on_failed = on_failed,
        .on_exited = on_exited,
    };
    return silt_launch_start(&s->launch, &spawn, e);
}

static int make(struct silt_spare_shell *s, struct silt_error *e)
{
    silt_auto_fd out = -1, err = -1, in = -1;
    int pair[2];
    if (silt_command_pipe(&s->out, &out, e) < 0 || silt_command_pipe(&s->err, &err, e) < 0)
        return -1;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "create a pipe");
    in = pair[0];
    s->in = pair[1];
    s->state = memfd_create("silt", MFD_CLOEXEC);
    s->script = memfd_create("silt", MFD_CLOEXEC);
    if (s->state < 0 || s->script < 0)
        return silt_fail_errno(e, "create a memory file");
    return launch(s, in, out, err, e);
}

static void on_wanted(struct silt_timer *t)
{
    struct silt_spare_shell *s = silt_outer(t, struct silt_spare_shell, timer);
    struct silt_error e;
    if (silt_list_empty(&s->agent->sessions))
        return;
    s->handle = silt_handles_try(&s->agent->handles);
    s->doomed = false;
    if (s->handle == NULL)
        return;
    if (make(s, &e) < 0) {
        leave(s); /* commands work without it */
        return;
    }
    s->timer.on_time = on_idle;
    silt_loop_after(&s->agent->loop, &s->timer, IDLE_MS);
}

void silt_spare_shell_init(struct silt_spare_shell *s, struct silt_agent *a)
{
    *s = (struct silt_spare_shell){.agent = a,
                                   .launch.report.fd = -1,
                                   .in = -1,
                                   .state = -1,
                                   .script = -1,
                                   .out = -1,
                                   .err = -1};
}

void silt_spare_shell_want(struct silt_spare_shell *s)
{
    if (s->handle != NULL)
        return;
    s->timer.on_time = on_wanted;
    silt_loop_after(&s->agent->loop, &s->timer, 0);
}

/* ---- giving it a command ---- */

static bool copy_state(int from, int to)
{
    static char text[SILT_STATE_SMALL];
    ssize_t n = pread(from, text, sizeof(text), 0);
    return n > 0 && pwrite(to, text, (size_t)n, 0) == n;
}

static bool set_limits(const struct silt_spare_shell *s, const struct silt_limits *want)
{
    bool ok = true;
    for (int what = 0; what < RLIM_NLIMITS && ok; what++)
        if (((want->known & s->limits.known) >> what & 1) != 0
            && memcmp(&want->list[what], &s->limits.list[what], sizeof(struct rlimit)) != 0)
            ok = syscall(SYS_prlimit64, s->launch.child.pid, what, &want->list[what], NULL) == 0;
    return ok;
}

/* The shell reads this line byte by byte, because it comes through a pipe. */
static bool let_go(const struct silt_spare_shell *s, const struct silt_exec *x)
{
    struct silt_script line;
    silt_script_init(&line, NULL, NULL);
    silt_script_add_c(&line, "exec <&5 5<&-;");
    silt_command_load(&line, x);
    (void)kill(s->launch.child.pid, SIGCONT); /* the guest may have stopped all its processes */
    return write(s->in, line.text, line.len) == (ssize_t)line.len;
}

bool silt_spare_shell_take(struct silt_spare_shell *s, struct silt_exec *x)
{
    struct silt_error e;
    if (s->handle == NULL || s->doomed || s->launch.report.fd >= 0)
        return false;
    if (!copy_state(x->state_file, s->state) || !set_limits(s, &x->limits)
        || silt_command_write(x, s->script, &e) < 0 || !let_go(s, x)) {
        silt_spare_shell_drop(s);
        return false;
    }
    x->handle = s->handle;
    s->handle = NULL;
    x->out = silt_take_fd(&s->out);
    x->err = silt_take_fd(&s->err);
    silt_launch_take(&x->launch, &s->launch);
    silt_loop_cancel(&s->agent->loop, &s->timer);
    close_all(s);
    return true;
}
