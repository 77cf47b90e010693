/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/foreground.h"
#include "agent/exec/exported.h"
#include "agent/shell/dev_silt.h"
#include "agent/shell/state.h"
#include "base/own.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

enum {
    LOOK_MS = 1000,   /* how often to check whether a command's shell is stopped */
    RELOAD_MS = 5000, /* limit for a new shell to load the old one's state */
};

static int open_fifo(struct silt_session *s, int which, struct silt_error *e)
{
    char name[SILT_DEV_SILT_NAME_SIZE];
    struct silt_fifo *f = &s->out[which];
    silt_shell_name(s->slot, which == 0 ? SILT_SHELL_OUT : SILT_SHELL_ERR, name);
    if (f->read >= 0
        && silt_dev_silt_fifo_again(s->agent->directory, name, O_WRONLY, &f->write, e) == 0)
        return 0;
    silt_close_fd(&f->read); /* the guest removed the name: create a new one */
    if (silt_dev_silt_fifo(s->agent->directory, name, s->owner, O_RDONLY, &f->read, e) < 0)
        return -1;
    return silt_dev_silt_fifo_again(s->agent->directory, name, O_WRONLY, &f->write, e);
}

static void close_writers(struct silt_session *s)
{
    silt_close_fd(&s->out[0].write);
    silt_close_fd(&s->out[1].write);
}

/* A FIFO without writers is reused; one that a background job holds goes to the drains. */
static void give_fifos_back(struct silt_session *s, const struct silt_output *o)
{
    for (int i = 0; i < 2; i++)
        if (s->out[i].read >= 0 && !o->taps[i].ended)
            silt_drains_add(&s->agent->drains, silt_take_fd(&s->out[i].read));
    close_writers(s);
}

static void finish(struct silt_session *s)
{
    struct silt_exec *x = s->exec;
    silt_slice cwd = {NULL, 0};
    if (s->cwd != NULL && !s->dead)
        cwd = silt_slice_of(s->cwd);
    give_fifos_back(s, &x->outlet);
    if (x->start.head.timeout_ms > 0)
        silt_session_remove_file(s, SILT_SHELL_STATE);
    s->exec = NULL;
    silt_session_enter(s, SILT_SESSION_IDLE);
    silt_exec_end(x, cwd);
    if (s->dead)
        silt_session_died(s);
}

static struct silt_session *session_of(const struct silt_exec *x)
{
    struct silt_session *s = silt_session_find(x->agent, x->start.head.session);
    return s != NULL && s->exec == x ? s : NULL;
}

static void on_dry(struct silt_output *o)
{
    struct silt_session *s = session_of(silt_outer(o, struct silt_exec, outlet));
    if (s != NULL)
        finish(s);
}

static bool is_restless(struct silt_output *o)
{
    struct silt_session *s = session_of(silt_outer(o, struct silt_exec, outlet));
    return s != NULL && silt_handle_is_restless(s->handle);
}

static void end_command(struct silt_session *s)
{
    struct silt_exec *x = s->exec;
    silt_session_enter(s, SILT_SESSION_ENDING);
    silt_loop_cancel(&s->agent->loop, &s->timer);
    silt_loop_cancel(&s->agent->loop, &x->deadline);
    close_writers(s);
    silt_output_close(&x->outlet);
}

static void on_look(struct silt_timer *t)
{
    struct silt_session *s = silt_outer(t, struct silt_session, timer);
    (void)silt_session_wake(s);
    silt_loop_after(&s->agent->loop, t, LOOK_MS);
}

/* ---- timeout ---- */

static void on_reload_late(struct silt_timer *t)
{
    struct silt_session *s = silt_outer(t, struct silt_session, timer);
    if (s->shell.child.pid > 0)
        (void)kill(s->shell.child.pid, SIGKILL); /* then the session's shell has died */
}

static void replace_shell(struct silt_session *s)
{
    struct silt_spawn spawn = {.envp = silt_state_env(),
                               .dirs = {"/"},
                               .limits = s->limits.known != 0 ? &s->limits : NULL};
    struct silt_error e;
    if (s->purge.running || !s->dead)
        return;
    silt_exec_set_status(&s->exec->end, SIGKILL);
    silt_session_enter(s, SILT_SESSION_RELOADING);
    s->text_len = 0;
    char name[SILT_DEV_SILT_NAME_SIZE];
    silt_shell_name(s->slot, SILT_SHELL_STATE, name);
    /* An incomplete state is useless: then the session ends, and its next command gets a fresh
     * shell. */
    bool whole =
        s->exec->start.head.timeout_ms > 0
        && silt_dev_silt_ends_with(s->agent->directory, name, SILT_LIT(SILT_STATE_WHOLE "\n"));
    if (!whole || silt_session_launch(s, &spawn, &e) < 0) {
        s->dead = true;
        silt_foreground_shell_ended(s);
        return;
    }
    struct silt_shell sh = silt_session_next_shell(s);
    struct silt_script *lines = silt_shell_inputs_script(&s->gates);
    silt_shell_reload(lines, &sh);
    (void)silt_session_send(s, lines, &e); /* on failure: on_reload_late */
    s->timer.on_time = on_reload_late;
    silt_loop_after(&s->agent->loop, &s->timer, RELOAD_MS);
}

/* Whatever the command does about signals, its shell must not continue. */
static void expire(struct silt_session *s, const struct silt_id_set *keep)
{
    silt_session_enter(s, SILT_SESSION_EXPIRED);
    silt_loop_cancel(&s->agent->loop, &s->timer);
    silt_loop_cancel(&s->agent->loop, &s->exec->deadline);
    silt_limits_take(&s->limits, s->shell.child.pid);
    (void)kill(s->shell.child.pid, SIGKILL);
    silt_session_purge(s, keep);
}

/* Jobs of earlier commands stay. */
static void on_deadline(struct silt_timer *t)
{
    struct silt_exec *x = silt_outer(t, struct silt_exec, deadline);
    struct silt_session *s = session_of(x);
    if (s == NULL || s->state != SILT_SESSION_RUNNING)
        return;
    x->end.flags |= SILT_END_TIMEOUT;
    expire(s, &s->before);
}

void silt_foreground_kill(struct silt_session *s)
{
    expire(s, NULL);
}

void silt_foreground_clean(struct silt_session *s)
{
    replace_shell(s);
}

/* ---- from request to response ---- */

static void set_deadline(struct silt_session *s, struct silt_exec *x)
{
    if (x->start.head.timeout_ms == 0)
        return;
    silt_id_set_take(&s->before, s->handle);
    silt_id_set_remove(&s->before, s->shell.child.pid);
    x->deadline.on_time = on_deadline;
    silt_loop_after(&s->agent->loop, &x->deadline, x->start.head.timeout_ms);
}

static int send_lines(struct silt_session *s, const struct silt_start_frame *start,
                      struct silt_error *e)
{
    struct silt_shell sh = silt_session_next_shell(s);
    struct silt_script *lines = silt_shell_inputs_script(&s->gates);
    silt_shell_foreground(lines, &sh, start);
    if (silt_session_send(s, lines, e) == 0)
        return 0;
    if (e->code == SILT_LIMIT)
        return -1;
    (void)kill(s->shell.child.pid, SIGKILL); /* the guest removed its gate: it would wait forever */
    return 0;
}

static int begin(struct silt_session *s, struct silt_exec *x, struct silt_error *e)
{
    if (open_fifo(s, 0, e) < 0 || open_fifo(s, 1, e) < 0
        || (x->start.head.timeout_ms > 0 && silt_session_place_state(s, e) < 0))
        return -1;
    set_deadline(s, x);
    return send_lines(s, &x->start, e);
}

void silt_foreground_start(struct silt_session *s, struct silt_exec *x)
{
    struct silt_error e;
    if (begin(s, x, &e) < 0) {
        close_writers(s);
        silt_exec_fail(x, &e);
        return;
    }
    silt_close_fd(&s->kept);
    silt_session_enter(s, SILT_SESSION_RUNNING);
    s->exec = x;
    x->state = SILT_EXEC_RUNNING;
    x->pid = s->shell.child.pid;
    x->outlet.on_dry = on_dry;
    x->outlet.is_restless = is_restless;
    silt_start_frame_fini(&x->start);
    if ((x->start.head.flags & SILT_START_QUIET) == 0)
        silt_exec_say_started(x, x->pid);
    silt_output_open(&x->outlet, x->id, s->out[0].read, s->out[1].read);
    s->timer.on_time = on_look;
    silt_loop_after(&s->agent->loop, &s->timer, LOOK_MS);
}

void silt_foreground_answer(struct silt_session *s, const struct silt_answer *a)
{
    struct silt_agent_end *end = &s->exec->end;
    if (a->no_dir) {
        end->flags |= SILT_END_NO_CWD;
        end->code = 1;
        return;
    }
    free(s->cwd);
    s->cwd = a->cwd.len > 0 ? strndup(a->cwd.data, a->cwd.len) : NULL;
    if (s->state == SILT_SESSION_RELOADING)
        end->flags |= SILT_END_RESTARTED;
    else if ((end->flags & SILT_END_NO_CWD) == 0)
        end->code = a->code;
    if (s->state == SILT_SESSION_RUNNING)
        silt_exported_await(s);
    end_command(s);
}

void silt_foreground_shell_ended(struct silt_session *s)
{
    struct silt_agent_end *end = &s->exec->end;
    if (s->state == SILT_SESSION_EXPIRED) {
        replace_shell(s);
        return;
    }
    end->code = s->death.code;
    end->signal = s->death.signal;
    end->flags |= SILT_END_SHELL;
    end_command(s);
}

void silt_foreground_drop(struct silt_session *s)
{
    struct silt_exec *x = s->exec;
    s->exec = NULL;
    if (x == NULL)
        return;
    x->end.code = -1;
    x->end.flags |= SILT_END_SHELL;
    silt_exec_end(x, (silt_slice){NULL, 0});
}
