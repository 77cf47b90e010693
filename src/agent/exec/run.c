/* SPDX-License-Identifier: Apache-2.0 */
/* run: a command with its own process, from waiting for a handle to the last byte of its output.
 * Everything it starts is in its handle; command.c builds the command. */
#include "agent/exec/command.h"
#include "agent/exec/exec.h"
#include "agent/exec/spare_shell.h"
#include "agent/shell/state.h"
#include "agent/exec/inner_zygote.h"
#include "base/own.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    GRACE_MS = 5000, /* between SIGTERM and SIGKILL on a timeout */
    COMING_MS = 5,   /* an adopted process that is just entering cannot be killed yet */
};

static bool has_outlet(const struct silt_exec *x)
{
    return (x->start.head.flags & SILT_START_PIPES) == 0;
}

/* A kill may still be running while the last output is forwarded. */
static void end_if_over(struct silt_exec *x)
{
    if (x->state == SILT_EXEC_ENDING && x->outlet.state == SILT_OUTPUT_CLOSED && !x->purge.running)
        silt_exec_end(x, (silt_slice){NULL, 0});
}

/* The process is gone, and so is everything that had to end with it. */
static void close_down(struct silt_exec *x)
{
    if (!x->exited || x->purge.running || x->state == SILT_EXEC_ENDING)
        return;
    x->state = SILT_EXEC_ENDING;
    if (has_outlet(x))
        silt_output_close(&x->outlet);
    else
        end_if_over(x);
}

static void on_dry(struct silt_output *o)
{
    end_if_over(silt_outer(o, struct silt_exec, outlet));
}

static void on_moved(struct silt_output *o)
{
    silt_flush_moved(silt_outer(o, struct silt_exec, outlet));
}

static bool is_restless(struct silt_output *o)
{
    return silt_handle_is_restless(silt_outer(o, struct silt_exec, outlet)->handle);
}

static void purge(struct silt_exec *x, int signal, uint32_t grace_ms);

static void on_coming(struct silt_timer *t)
{
    struct silt_exec *x = silt_outer(t, struct silt_exec, deadline);
    if (!x->exited)
        purge(x, SIGKILL, 0);
}

/* It has not entered its handle yet, or has just ended. */
static void kill_leader(struct silt_exec *x)
{
    if (x->leader.fd < 0) {
        (void)kill(x->pid, SIGKILL);
    } else if (syscall(SYS_pidfd_send_signal, x->leader.fd, SIGKILL, NULL, 0) < 0
               && errno == EPERM) {
        x->deadline.on_time = on_coming;
        silt_loop_after(&x->agent->loop, &x->deadline, COMING_MS);
    }
}

/* A shell dies of the signal at once even if its child does not: then it took SIGKILL to end the
 * command. */
static void tell_force(struct silt_exec *x)
{
    bool timed_out = (x->end.flags & SILT_END_TIMEOUT) != 0;
    if (x->exited && x->purge.forced && x->end.signal == x->purge.signal && !timed_out)
        silt_exec_set_status(&x->end, SIGKILL);
}

static void on_clean(struct silt_kill_tree *p)
{
    struct silt_exec *x = silt_outer(p, struct silt_exec, purge);
    if (!x->exited)
        kill_leader(x);
    if (x->state == SILT_EXEC_ENDING) {
        end_if_over(x);
        return;
    }
    tell_force(x);
    close_down(x);
}

static void purge(struct silt_exec *x, int signal, uint32_t grace_ms)
{
    x->purge.loop = &x->agent->loop;
    x->purge.handle = x->handle;
    x->purge.on_clean = on_clean;
    if (signal == SIGKILL)
        silt_kill_tree_start(&x->purge, &x->agent->purges);
    else
        silt_kill_tree_gently(&x->purge, &x->agent->purges, signal, grace_ms);
}

static void on_deadline(struct silt_timer *t)
{
    struct silt_exec *x = silt_outer(t, struct silt_exec, deadline);
    x->end.flags |= SILT_END_TIMEOUT;
    purge(x, SIGTERM, GRACE_MS);
}

static void on_started(struct silt_launch *l)
{
    struct silt_exec *x = silt_outer(l, struct silt_exec, launch);
    x->state = SILT_EXEC_RUNNING;
    silt_start_frame_fini(&x->start);
    silt_exec_say_started(x, x->pid);
    silt_flush_started(x);
    if (has_outlet(x))
        silt_output_open(&x->outlet, x->id, x->out, x->err);
    if (x->start.head.timeout_ms > 0) {
        x->deadline.on_time = on_deadline;
        silt_loop_after(&x->agent->loop, &x->deadline, x->start.head.timeout_ms);
    }
}

/* For a command with a log, the error that siltd would report to the client goes into the log. */
static void log_error(struct silt_exec *x, const struct silt_error *e)
{
    if (x->log.fd < 0)
        return;
    int len = snprintf(silt_log_writer_room(), SILT_LOG_RECORD_MAX, "%s\n", e->text);
    silt_log_writer_put(&x->log, SILT_LOG_STDERR, (size_t)len);
}

static void on_failed(struct silt_launch *l, bool no_dir, const struct silt_error *e)
{
    struct silt_exec *x = silt_outer(l, struct silt_exec, launch);
    if (!no_dir || x->start.head.mode != SILT_EXEC_BACKGROUND) {
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
    struct silt_exec *x = silt_outer(l, struct silt_exec, launch);
    x->exited = true;
    silt_exec_set_status(&x->end, status);
    silt_loop_cancel(&x->agent->loop, &x->deadline);
    /* Processes that ignored the signal must not outlive the command, nor a context's children the
     * context. */
    if ((x->end.flags & SILT_END_TIMEOUT) != 0 || !has_outlet(x))
        purge(x, SIGKILL, 0);
    close_down(x);
}

static void fail_doomed(struct silt_exec *x)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_GONE, "killed before it started");
    silt_exec_fail(x, &e);
}

static void prepare(struct silt_exec *x)
{
    x->launch.on_started = on_started;
    x->launch.on_failed = on_failed;
    x->launch.on_exited = on_exited;
    x->outlet.on_dry = on_dry;
    x->outlet.on_moved = on_moved;
    x->outlet.is_restless = is_restless;
}

static void on_forked(struct silt_exec *x, const struct silt_error *e)
{
    if (e != NULL) {
        silt_exec_fail(x, e);
        return;
    }
    on_started(&x->launch);
    if (x->doomed)
        purge(x, SIGKILL, 0);
}

/* It stays WAITING until it has a pid. */
static void have_forked(struct silt_exec *x)
{
    struct silt_error e;
    x->on_forked = on_forked;
    if (silt_inner_zygote_fork(x, &e) < 0)
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
    prepare(x);
    if (x->from != 0) {
        have_forked(x);
        return;
    }
    if (silt_command_launch(x, &e) < 0) {
        silt_exec_fail(x, &e);
        return;
    }
    x->pid = x->launch.child.pid;
    x->state = SILT_EXEC_STARTING;
    silt_close_fd(&x->state_file);
    silt_close_fd(&x->start.secret);
    silt_close_fd(&x->start.lines);
}

static void on_handle(struct silt_handle_wait *w, struct silt_handle *h)
{
    go(silt_outer(w, struct silt_exec, wait), h);
}

static void on_no_handle(struct silt_handle_wait *w)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_LIMIT, "%d commands run in this sandbox already", SILT_HANDLES_MAX);
    silt_exec_fail(silt_outer(w, struct silt_exec, wait), &e);
}

/* Its reaper gets the exit status. Its children end with it: the handle is emptied. */
static void on_leader(struct silt_watch *w, uint32_t events)
{
    struct silt_exec *x = silt_outer(w, struct silt_exec, leader);
    (void)events;
    silt_loop_forget(&x->agent->loop, w);
    silt_close_fd(&w->fd);
    silt_loop_cancel(&x->agent->loop, &x->deadline);
    x->exited = true;
    x->end.code = -1;
    purge(x, SIGKILL, 0);
}

void silt_run_adopt(struct silt_exec *x, pid_t pid, const int *fds, size_t count)
{
    struct silt_handle *h = &x->adopted_handle;
    *h = (struct silt_handle){
        .state = SILT_HANDLE_USED, .mode = x->agent->handles.mode, .fds = {-1, -1, -1}};
    memcpy(h->fds, fds + 1, (count - 1) * sizeof(int));
    x->handle = h;
    x->pid = pid;
    x->state = SILT_EXEC_RUNNING;
    x->leader = (struct silt_watch){.fd = fds[0], .on_ready = on_leader};
    silt_loop_watch(&x->agent->loop, &x->leader, EPOLLIN);
}

void silt_run_start(struct silt_exec *x)
{
    x->wait.on_handle = on_handle;
    x->wait.on_none = on_no_handle;
    struct silt_handle *h = silt_handles_want(&x->agent->handles, &x->wait);
    if (h != NULL)
        go(x, h);
}

/* What a running shell cannot be given afterwards. */
static bool needs_a_new_shell(const struct silt_exec *x)
{
    const struct silt_start_frame *s = &x->start;
    return x->doomed || !x->ordinary || s->cwd.len > 0 || s->user.len > 0 || x->as[0] != 0
           || s->secret >= 0 || x->input.wanted;
}

void silt_run_with_state(struct silt_exec *x, int state_file, pid_t like)
{
    struct silt_spare_shell *spare = x->agent->spare;
    x->state_file = state_file;
    x->like = like;
    silt_limits_take(&x->limits, like);
    prepare(x);
    if (!needs_a_new_shell(x) && silt_spare_shell_take(spare, x)) {
        x->pid = x->launch.child.pid;
        silt_close_fd(&x->state_file);
        on_started(&x->launch);
    } else {
        silt_run_start(x);
    }
    if (x->as[0] == 0) /* a spare shell would be root's */
        silt_spare_shell_want(spare);
}

static void on_doomed(struct silt_timer *t)
{
    fail_doomed(silt_outer(t, struct silt_exec, deadline));
}

/* It has not started. If its session is about to hand it over, go() will see the flag. */
static void doom(struct silt_exec *x)
{
    x->doomed = true;
    if (x->wait.all == NULL)
        return;
    silt_handle_stop_waiting(&x->wait);
    x->deadline.on_time = on_doomed;
    silt_loop_after(&x->agent->loop, &x->deadline, 0);
}

void silt_run_interrupt(struct silt_exec *x, int signal)
{
    if (x->state == SILT_EXEC_RUNNING && !x->exited)
        (void)kill(-x->pid, signal);
}

void silt_run_signal(struct silt_exec *x, int signal)
{
    if ((x->state == SILT_EXEC_RUNNING || x->state == SILT_EXEC_STARTING) && !x->exited)
        (void)kill(x->pid, signal);
}

void silt_run_kill(struct silt_exec *x, int signal, uint32_t grace_ms)
{
    bool empties = signal == SIGKILL || grace_ms > 0;
    switch (x->state) {
    case SILT_EXEC_WAITING:
        if (empties || signal == SIGTERM)
            doom(x);
        return;
    case SILT_EXEC_STARTING:
        (void)kill(x->pid, signal); /* it may not have entered its handle yet */
        if (empties)
            purge(x, signal, grace_ms);
        return;
    case SILT_EXEC_RUNNING:
    case SILT_EXEC_ENDING:
        if (empties)
            purge(x, signal, grace_ms);
        else
            silt_handle_signal(x->handle, signal);
        return;
    case SILT_EXEC_DONE:
        return;
    }
}
