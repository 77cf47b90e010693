/* SPDX-License-Identifier: Apache-2.0 */
/* run: a command in a process of its own: `bash -c` without a session, or a new shell that first
 * loads the state of a session. Everything it starts is in its handle. */
#include "agent/exec.h"
#include "agent/script.h"
#include "agent/shell.h"
#include "agent/state.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    ARG_MAX_BYTES = 128 << 10, /* of one argument with its end: MAX_ARG_STRLEN of the kernel */
    GRACE_MS = 5000,           /* between SIGTERM and SIGKILL when the time is over */
};

static bool is_background(const struct silt_exec *x)
{
    return x->start.head.mode == SILT_EXEC_BACKGROUND;
}

/* The process is gone, and so is what had to go with it. */
static void close_down(struct silt_exec *x)
{
    if (!x->exited || x->purge.running || x->state == SILT_EXEC_ENDING)
        return;
    x->state = SILT_EXEC_ENDING;
    silt_outlet_close(&x->outlet);
}

static void on_dry(struct silt_outlet *o)
{
    silt_exec_end(silt_container_of(o, struct silt_exec, outlet), (silt_slice){NULL, 0});
}

static bool is_restless(struct silt_outlet *o)
{
    return silt_handle_is_restless(silt_container_of(o, struct silt_exec, outlet)->handle);
}

static void on_clean(struct silt_purge *p)
{
    close_down(silt_container_of(p, struct silt_exec, purge));
}

static void purge(struct silt_exec *x)
{
    x->purge.loop = &x->agent->loop;
    x->purge.handle = x->handle;
    x->purge.on_clean = on_clean;
    silt_purge_start(&x->purge, &x->agent->purges);
    if (!x->exited)
        (void)kill(x->pid, SIGKILL); /* it may not have entered its handle yet */
}

static void on_grace_over(struct silt_timer *t)
{
    purge(silt_container_of(t, struct silt_exec, deadline));
}

static void on_deadline(struct silt_timer *t)
{
    struct silt_exec *x = silt_container_of(t, struct silt_exec, deadline);
    x->end.flags |= SILT_END_TIMEOUT;
    silt_handle_signal(x->handle, SIGTERM);
    t->on_time = on_grace_over;
    silt_loop_after(&x->agent->loop, t, GRACE_MS);
}

static void on_started(struct silt_launch *l)
{
    struct silt_exec *x = silt_container_of(l, struct silt_exec, launch);
    x->state = SILT_EXEC_RUNNING;
    silt_start_fini(&x->start);
    silt_exec_say_started(x, x->pid);
    silt_outlet_open(&x->outlet, x->id, x->out, x->err);
    if (x->start.head.timeout_ms > 0) {
        x->deadline.on_time = on_deadline;
        silt_loop_after(&x->agent->loop, &x->deadline, x->start.head.timeout_ms);
    }
}

/* What siltd says to the caller of a command without a log stands in the log of one that has one. */
static void log_error(struct silt_exec *x, const struct silt_error *e)
{
    if (x->log.fd < 0)
        return;
    int len = snprintf(silt_log_writer_room(), SILT_LOG_RECORD_MAX, "%s\n", e->text);
    silt_log_writer_put(&x->log, SILT_LOG_STDERR, (size_t)len);
}

static void on_failed(struct silt_launch *l, bool no_dir, const struct silt_error *e)
{
    struct silt_exec *x = silt_container_of(l, struct silt_exec, launch);
    if (!no_dir || !is_background(x)) {
        silt_exec_fail(x, e);
        return;
    }
    silt_exec_say_started(x, x->pid);
    log_error(x, e);
    x->end.code = 1;
    x->end.flags |= SILT_END_NO_CWD;
    silt_exec_end(x, (silt_slice){NULL, 0});
}

static void on_exited(struct silt_launch *l, int status)
{
    struct silt_exec *x = silt_container_of(l, struct silt_exec, launch);
    x->exited = true;
    silt_exec_set_status(&x->end, status);
    silt_loop_cancel(&x->agent->loop, &x->deadline);
    if (x->end.flags & SILT_END_TIMEOUT)
        purge(x); /* what ignored the signal must not outlive the command */
    close_down(x);
}

static int make_pipe(int *ret_ours, int *ret_theirs, struct silt_error *e)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "create a pipe");
    *ret_ours = pair[0];
    *ret_theirs = pair[1];
    return fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : silt_fail_errno(e, "prepare a pipe");
}

static int make_memory(silt_slice bytes, int *ret_fd, struct silt_error *e)
{
    silt_auto_fd fd = memfd_create("silt", MFD_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "create a memory file");
    if (silt_fd_write_all(fd, bytes, e) < 0)
        return silt_because(e, "put down a command");
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

/* Launches with the pipes that every mode has; s->err or the second extra is the place for the
 * error stream. */
static int launch(struct silt_exec *x, struct silt_spawn *s, int *err_place, struct silt_error *e)
{
    silt_auto_fd out = -1;
    silt_auto_fd err = -1;
    if (make_pipe(&x->out, &out, e) < 0 || make_pipe(&x->err, &err, e) < 0)
        return -1;
    s->path = SILT_SHELL_PATH;
    s->out = out;
    *err_place = err;
    s->handle = x->handle;
    s->joins = &x->agent->joins;
    x->launch.on_started = on_started;
    x->launch.on_failed = on_failed;
    x->launch.on_exited = on_exited;
    x->outlet.on_dry = on_dry;
    x->outlet.is_restless = is_restless;
    if (silt_launch_start(&x->launch, s, e) < 0)
        return -1;
    x->pid = x->launch.child.pid;
    x->state = SILT_EXEC_STARTING;
    return 0;
}

static int launch_plain(struct silt_exec *x, struct silt_error *e)
{
    static char name[] = SILT_SHELL_PATH;
    static char option[] = "-c";
    static char long_text[] = "\\command eval \"$(</proc/self/fd/3)\" 3<&-";
    char cwd[PATH_MAX];
    silt_slice text = x->start.command;
    silt_auto_free char **envp = NULL;
    silt_auto_free char *copy = NULL;
    silt_auto_fd memory = -1;
    if (silt_slice_to_cstr(x->start.cwd, cwd, sizeof(cwd), e) < 0
        || silt_start_envp(&x->start, &envp, e) < 0)
        return -1;
    bool is_long = text.len >= ARG_MAX_BYTES;
    if (is_long && make_memory(text, &memory, e) < 0)
        return -1;
    if (!is_long && (copy = strndup(text.data, text.len)) == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for a command");
    char *const argv[] = {name, option, is_long ? long_text : copy, NULL};
    struct silt_spawn s = {
        .argv = argv,
        .envp = envp,
        .in = -1,
        .extra = {memory, -1},
        .dirs = {x->start.cwd.len > 0 ? cwd : SILT_WORKSPACE},
    };
    return launch(x, &s, &s.err, e);
}

/* The loading shell is deaf to errors: its error stream is /dev/null until the command begins. When
 * its input becomes /dev/null, too, it ends after this command, with its status. */
static void write_background(struct silt_script *s, const struct silt_start *start)
{
    silt_script_add_c(s, "\\command . /proc/self/fd/3\n" SILT_SHELL_GO_TO_PWD "\n\\command eval ");
    silt_script_open_quote(s);
    silt_script_add_c(s, "\\command exec </dev/null 2>&4 3<&- 4>&-\n");
    if (start->cwd.len > 0) {
        silt_script_add_c(s, "\\command cd -- ");
        silt_shell_add_dir(s, start->cwd);
        silt_script_add_c(s, " || \\command exit 1\n");
    }
    if (start->env.len > 0) {
        silt_script_add_c(s, "\\command export ");
        silt_script_add_env(s, start->env);
        silt_script_add_c(s, "|| \\command exit 1\n");
    }
    silt_script_add(s, start->command);
    silt_script_close_quote(s);
    silt_script_add_c(s, "\n");
}

static int open_memory(void *arg)
{
    (void)arg;
    return memfd_create("silt", MFD_CLOEXEC);
}

static int script_file(const struct silt_start *start, int *ret_fd, struct silt_error *e)
{
    static struct silt_script s;
    silt_script_init(&s, open_memory, NULL);
    silt_shell_expect(&s, start);
    write_background(&s, start);
    bool in_file = silt_script_flush(&s);
    int fd = silt_take_fd(&s.file);
    silt_script_fini(&s);
    if (!in_file)
        return make_memory((silt_slice){s.text, s.len}, ret_fd, e);
    *ret_fd = fd;
    return s.broken ? silt_fail(e, SILT_LIMIT, "put down a command") : 0;
}

static int launch_background(struct silt_exec *x, struct silt_error *e)
{
    char cwd[PATH_MAX];
    silt_auto_fd script = -1;
    if (silt_slice_to_cstr(x->start.cwd, cwd, sizeof(cwd), e) < 0
        || script_file(&x->start, &script, e) < 0)
        return -1;
    if (lseek(script, 0, SEEK_SET) < 0)
        return silt_fail_errno(e, "rewind a command");
    struct silt_spawn s = {
        .argv = silt_shell_argv(),
        .envp = silt_state_env(),
        .in = script,
        .err = -1,
        .extra = {x->state_file, -1},
        .like = x->like,
        .limits = &x->limits,
        .probe = x->start.cwd.len > 0 ? cwd : NULL,
        .background = true,
    };
    return launch(x, &s, &s.extra[1], e);
}

static void fail_doomed(struct silt_exec *x)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_GONE, "killed before it started");
    silt_exec_fail(x, &e);
}

static void go(struct silt_exec *x, struct silt_handle *h)
{
    struct silt_error e;
    x->handle = h;
    if (x->doomed) {
        fail_doomed(x);
        return;
    }
    int done = is_background(x) ? launch_background(x, &e) : launch_plain(x, &e);
    silt_close_fd(&x->state_file);
    if (done < 0)
        silt_exec_fail(x, &e);
}

static void on_handle(struct silt_handle_wait *w, struct silt_handle *h)
{
    go(silt_container_of(w, struct silt_exec, wait), h);
}

static void on_no_handle(struct silt_handle_wait *w)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_LIMIT, "%d commands run in this sandbox already", SILT_HANDLES_MAX);
    silt_exec_fail(silt_container_of(w, struct silt_exec, wait), &e);
}

void silt_run_start(struct silt_exec *x)
{
    x->wait.on_handle = on_handle;
    x->wait.on_none = on_no_handle;
    struct silt_handle *h = silt_handles_want(&x->agent->handles, &x->wait);
    if (h != NULL)
        go(x, h);
}

void silt_run_with_state(struct silt_exec *x, int state_file, pid_t like)
{
    x->state_file = state_file;
    x->like = like;
    silt_limits_take(&x->limits, like);
    silt_state_trim(state_file);
    silt_run_start(x);
}

void silt_run_signal(struct silt_exec *x, int signal)
{
    switch (x->state) {
    case SILT_EXEC_WAITING:
        if (signal != SIGKILL)
            return;
        if (x->wait.all != NULL)
            fail_doomed(x);
        else
            x->doomed = true; /* its session is about to hand it over */
        return;
    case SILT_EXEC_STARTING:
    case SILT_EXEC_RUNNING:
        if (signal == SIGKILL)
            purge(x);
        else
            silt_handle_signal(x->handle, signal);
        return;
    case SILT_EXEC_ENDING:
    case SILT_EXEC_DONE:
        return;
    }
}
