/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session.h"
#include "agent/folder.h"
#include "agent/shell.h"
#include "agent/state.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    DOUBT_MS = 1000,  /* how often we ask whether the shell still does what we say */
    DOUBTS_MAX = 2,
    SAVE_MS = 5000,   /* for a shell to write or load its state */
    FAREWELL_MS = 1000, /* between SIGTERM and SIGKILL for a session that is closed */
};

static void died(struct silt_session *s);
static void start_shell_again(struct silt_session *s);

static void remove_file(const struct silt_session *s, enum silt_shell_file file)
{
    char name[8];
    silt_shell_name(s->slot, file, name);
    silt_folder_remove(s->agent->folder, name);
}

/* ---- the end of a session ---- */

static void free_session(struct silt_grave *g)
{
    struct silt_session *s = silt_container_of(g, struct silt_session, grave);
    silt_start_fini(&s->start);
    silt_id_set_free(&s->before);
    silt_close_fd(&s->in);
    silt_close_fd(&s->status.fd);
    for (int i = 0; i < 2; i++) {
        silt_close_fd(&s->out[i].read);
        silt_close_fd(&s->out[i].write);
    }
    free(s->cwd);
    silt_free_ptr(&s->note.data);
    free(s);
}

static void leave(struct silt_session *s)
{
    struct silt_agent *a = s->agent;
    static const enum silt_shell_file files[] = {SILT_SHELL_OUT, SILT_SHELL_ERR, SILT_SHELL_STATUS,
                                                 SILT_SHELL_COMMAND, SILT_SHELL_STATE};
    s->state = SILT_SESSION_GONE;
    silt_list_remove(&s->link);
    silt_loop_cancel(&a->loop, &s->timer);
    silt_loop_forget(&a->loop, &s->status);
    silt_purge_stop(&s->purge);
    silt_handle_stop_waiting(&s->wait);
    silt_launch_forget(&s->shell);
    for (size_t i = 0; i < SILT_COUNT(files); i++)
        remove_file(s, files[i]);
    /* Jobs that outlive the shell go on writing. */
    for (int i = 0; i < 2; i++)
        if (s->out[i].read >= 0)
            silt_drains_add(&a->drains, silt_take_fd(&s->out[i].read));
    silt_loop_bury(&a->loop, &s->grave);
    if (s->handle != NULL)
        silt_handle_leave(&a->handles, s->handle);
}

static bool owns(const struct silt_session *s, const struct silt_exec *x)
{
    return x->start.head.session == s->id && x->start.head.mode == SILT_EXEC_BACKGROUND && x != s->exec;
}

static size_t kill_background(struct silt_session *s)
{
    size_t count = 0;
    silt_list_each(it, &s->agent->execs) {
        struct silt_exec *x = silt_container_of(it, struct silt_exec, link);
        if (!owns(s, x))
            continue;
        count++;
        silt_run_signal(x, SIGKILL);
    }
    return count;
}

static void say_end(const struct silt_session *s, uint32_t type)
{
    struct silt_say say = {.type = type, .id = s->id};
    if (type == SILT_AGENT_DIED)
        say.head = (silt_slice){(const char *)&s->death, sizeof(s->death)};
    silt_channel_say(&s->agent->channel, &say);
}

static void died(struct silt_session *s)
{
    (void)kill_background(s);
    leave(s);
    say_end(s, SILT_AGENT_DIED);
}

/* ---- the shell's input and output ---- */

static bool write_lines(struct silt_session *s, const struct silt_lines *l)
{
    /* The shell has read all we wrote before, or nearly: this fits, and in one piece. */
    return write(s->in, l->text, l->len) == (ssize_t)l->len;
}

static struct silt_shell next_mark(struct silt_session *s)
{
    s->mark = ++s->agent->marks;
    return (struct silt_shell){.folder = s->agent->folder, .slot = s->slot, .mark = s->mark};
}

static int open_fifo(struct silt_session *s, int which, struct silt_error *e)
{
    char name[8];
    struct silt_fifo *f = &s->out[which];
    silt_shell_name(s->slot, which == 0 ? SILT_SHELL_OUT : SILT_SHELL_ERR, name);
    if (f->read >= 0 && silt_folder_fifo_again(s->agent->folder, name, &f->write, e) == 0)
        return 0;
    silt_close_fd(&f->read); /* the guest took the name away: a new one */
    if (silt_folder_fifo(s->agent->folder, name, O_RDONLY, &f->read, e) < 0)
        return -1;
    return silt_folder_fifo_again(s->agent->folder, name, &f->write, e);
}

/* A FIFO that nobody can write to any more is used again; one that a job holds goes to the drains. */
static void close_fifos(struct silt_session *s, const struct silt_outlet *o)
{
    for (int i = 0; i < 2; i++) {
        if (s->out[i].read >= 0 && !o->taps[i].ended)
            silt_drains_add(&s->agent->drains, silt_take_fd(&s->out[i].read));
        silt_close_fd(&s->out[i].write);
    }
}

/* ---- a foreground command ---- */

static void finish(struct silt_session *s)
{
    struct silt_exec *x = s->exec;
    silt_slice cwd = s->cwd != NULL && !s->dead ? silt_slice_of(s->cwd) : (silt_slice){NULL, 0};
    close_fifos(s, &x->outlet);
    if (s->in_file)
        remove_file(s, SILT_SHELL_COMMAND);
    if (x->start.head.timeout_ms > 0)
        remove_file(s, SILT_SHELL_STATE);
    s->exec = NULL;
    s->state = SILT_SESSION_IDLE;
    silt_exec_end(x, cwd);
    if (s->dead)
        died(s);
}

static void on_dry(struct silt_outlet *o)
{
    struct silt_exec *x = silt_container_of(o, struct silt_exec, outlet);
    struct silt_session *s = silt_session_find(x->agent, x->start.head.session);
    if (s != NULL && s->exec == x)
        finish(s);
}

static void end_command(struct silt_session *s)
{
    struct silt_exec *x = s->exec;
    s->state = SILT_SESSION_ENDING;
    silt_loop_cancel(&s->agent->loop, &s->timer);
    silt_loop_cancel(&s->agent->loop, &x->deadline);
    silt_close_fd(&s->out[0].write);
    silt_close_fd(&s->out[1].write);
    silt_outlet_close(&x->outlet);
}

static void end_with_shell(struct silt_session *s)
{
    struct silt_exec *x = s->exec;
    x->end.code = s->death.code;
    x->end.signal = s->death.signal;
    x->end.flags |= SILT_END_SHELL;
    end_command(s);
}

/* A shell that reads our lines but does not answer (`set -n`, `set -r`, a function called `command`)
 * cannot be driven any more. It has read the line after the one that answers when its input is empty. */
static void on_doubt(struct silt_timer *t)
{
    struct silt_session *s = silt_container_of(t, struct silt_session, timer);
    int unread = 1;
    if (ioctl(s->in, FIONREAD, &unread) == 0 && unread == 0)
        s->doubts++;
    else
        s->doubts = 0;
    if (s->doubts >= DOUBTS_MAX && s->shell.child.pid > 0)
        (void)kill(s->shell.child.pid, SIGKILL);
    else
        silt_loop_after(&s->agent->loop, t, DOUBT_MS);
}

/* ---- a command whose time is over ---- */

static void replace_shell(struct silt_session *s)
{
    if (s->state != SILT_SESSION_EXPIRED || s->purge.running || !s->dead)
        return;
    silt_exec_set_status(&s->exec->end, SIGKILL);
    start_shell_again(s);
}

static void on_clean(struct silt_purge *p);

static void purge(struct silt_session *s, const struct silt_id_set *keep)
{
    s->purge.loop = &s->agent->loop;
    s->purge.handle = s->handle;
    s->purge.keep = keep;
    s->purge.on_clean = on_clean;
    silt_purge_start(&s->purge, &s->agent->purges);
}

/* Whatever the command does about signals, its shell is the one that must not go on. Jobs of earlier
 * commands stay. */
static void on_deadline(struct silt_timer *t)
{
    struct silt_exec *x = silt_container_of(t, struct silt_exec, deadline);
    struct silt_session *s = silt_session_find(x->agent, x->start.head.session);
    if (s == NULL || s->exec != x || s->state != SILT_SESSION_RUNNING)
        return;
    x->end.flags |= SILT_END_TIMEOUT;
    s->state = SILT_SESSION_EXPIRED;
    silt_loop_cancel(&s->agent->loop, &s->timer);
    silt_limits_take(&s->limits, s->shell.child.pid);
    (void)kill(s->shell.child.pid, SIGKILL);
    purge(s, &s->before);
}

static void on_reload_late(struct silt_timer *t)
{
    struct silt_session *s = silt_container_of(t, struct silt_session, timer);
    if (s->shell.child.pid > 0)
        (void)kill(s->shell.child.pid, SIGKILL); /* then it is a session whose shell died */
}

/* ---- the shell's life ---- */

static void on_started(struct silt_launch *l)
{
    struct silt_session *s = silt_container_of(l, struct silt_session, shell);
    int32_t pid = l->child.pid;
    struct silt_say say = {.type = SILT_AGENT_OPENED,
                           .id = s->id,
                           .head = {(const char *)&pid, sizeof(pid)}};
    silt_start_fini(&s->start);
    if (!s->opened)
        silt_channel_say(&s->agent->channel, &say);
    s->opened = true;
}

static void on_failed(struct silt_launch *l, bool no_dir, const struct silt_error *e)
{
    struct silt_session *s = silt_container_of(l, struct silt_session, shell);
    struct silt_exec *x = s->exec;
    (void)no_dir;
    s->dead = true;
    s->death = (struct silt_agent_end){.code = -1};
    if (s->state == SILT_SESSION_RELOADING) {
        end_with_shell(s);
        return;
    }
    s->exec = NULL;
    if (x != NULL)
        silt_exec_fail(x, e);
    if (s->state == SILT_SESSION_CLOSING)
        say_end(s, SILT_AGENT_CLOSED);
    else
        silt_agent_say_failed(s->agent, s->id, e);
    leave(s);
}

static void close_if_empty(struct silt_session *s)
{
    if (s->state != SILT_SESSION_CLOSING || s->purge.running || !s->dead || kill_background(s) > 0)
        return;
    leave(s);
    say_end(s, SILT_AGENT_CLOSED);
}

static void on_clean(struct silt_purge *p)
{
    struct silt_session *s = silt_container_of(p, struct silt_session, purge);
    replace_shell(s);
    close_if_empty(s);
}

static void fail_saving(struct silt_session *s, enum silt_code code, const char *text)
{
    struct silt_exec *x = s->exec;
    struct silt_error e;
    s->exec = NULL;
    s->state = SILT_SESSION_IDLE;
    silt_loop_cancel(&s->agent->loop, &s->timer);
    (void)silt_fail(&e, code, "%s", text);
    silt_exec_fail(x, &e);
}

static void on_exited(struct silt_launch *l, int status)
{
    struct silt_session *s = silt_container_of(l, struct silt_session, shell);
    s->dead = true;
    s->death = (struct silt_agent_end){0};
    silt_exec_set_status(&s->death, status);
    switch (s->state) {
    case SILT_SESSION_RUNNING:
    case SILT_SESSION_RELOADING:
        end_with_shell(s);
        return;
    case SILT_SESSION_SAVING:
        fail_saving(s, SILT_GONE, "the session's shell ended");
        died(s);
        return;
    case SILT_SESSION_EXPIRED:
        replace_shell(s);
        return;
    case SILT_SESSION_CLOSING:
        purge(s, NULL);
        return;
    case SILT_SESSION_ENDING: /* told when the command has ended */
    case SILT_SESSION_GONE:
        return;
    case SILT_SESSION_WAITING:
    case SILT_SESSION_IDLE:
        died(s);
        return;
    }
}

static int launch_shell(struct silt_session *s, struct silt_spawn *spawn, struct silt_error *e)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "create a pipe");
    silt_auto_fd theirs = pair[0];
    silt_close_fd(&s->in);
    s->in = pair[1];
    if (fcntl(s->in, F_SETFL, O_NONBLOCK) < 0)
        return silt_fail_errno(e, "prepare a pipe");
    spawn->path = SILT_SHELL_PATH;
    spawn->argv = silt_shell_argv();
    spawn->in = theirs;
    spawn->out = spawn->err = -1; /* what it says by itself, outside of any command, is noise */
    spawn->extra[0] = spawn->extra[1] = -1;
    spawn->handle = s->handle;
    spawn->joins = &s->agent->joins;
    s->dead = false;
    s->shell = (struct silt_launch){
        .loop = &s->agent->loop,
        .children = &s->agent->children,
        .on_started = on_started,
        .on_failed = on_failed,
        .on_exited = on_exited,
    };
    return silt_launch_start(&s->shell, spawn, e);
}

static int start_shell(struct silt_session *s, struct silt_error *e)
{
    char cwd[PATH_MAX];
    silt_auto_free char **envp = NULL;
    const char *home = silt_start_getenv(&s->start, "HOME");
    if (silt_slice_to_cstr(s->start.cwd, cwd, sizeof(cwd), e) < 0 || silt_start_envp(&s->start, &envp, e) < 0)
        return -1;
    struct silt_spawn spawn = {
        .envp = envp,
        .dirs = {s->start.cwd.len > 0 ? cwd : SILT_WORKSPACE, home != NULL ? home : "/root", "/root", "/"},
    };
    return launch_shell(s, &spawn, e);
}

static void start_shell_again(struct silt_session *s)
{
    struct silt_spawn spawn = {.envp = silt_state_env(), .dirs = {"/"}, .limits = &s->limits};
    struct silt_lines lines;
    struct silt_error e;
    s->state = SILT_SESSION_RELOADING;
    s->text_len = 0;
    if (launch_shell(s, &spawn, &e) < 0) {
        s->death = (struct silt_agent_end){.code = -1};
        s->dead = true;
        end_with_shell(s);
        return;
    }
    struct silt_shell sh = next_mark(s);
    silt_shell_reload(&lines, &sh);
    (void)write_lines(s, &lines);
    s->timer.on_time = on_reload_late;
    silt_loop_after(&s->agent->loop, &s->timer, SAVE_MS);
}

/* ---- what the shell answers ---- */

static void on_saved(struct silt_session *s)
{
    struct silt_exec *x = s->exec;
    struct silt_error e;
    char name[8];
    int fd;
    silt_loop_cancel(&s->agent->loop, &s->timer);
    silt_shell_name(s->slot, SILT_SHELL_STATE, name);
    if (silt_folder_collect(s->agent->folder, name, &fd, &e) < 0) {
        fail_saving(s, e.code, e.text);
        return;
    }
    s->exec = NULL;
    s->state = SILT_SESSION_IDLE;
    silt_run_with_state(x, fd, s->shell.child.pid);
}

static void on_answer(struct silt_session *s, const char *code, silt_slice cwd)
{
    bool no_dir = code[0] == 'x';
    if (s->state == SILT_SESSION_SAVING) {
        on_saved(s);
        return;
    }
    if (s->state != SILT_SESSION_RUNNING && s->state != SILT_SESSION_RELOADING)
        return;
    struct silt_agent_end *end = &s->exec->end;
    if (no_dir) {
        end->flags |= SILT_END_NO_CWD;
        return;
    }
    free(s->cwd);
    s->cwd = strndup(cwd.data, cwd.len);
    if (s->state == SILT_SESSION_RELOADING)
        end->flags |= SILT_END_RESTARTED;
    else
        end->code = end->flags & SILT_END_NO_CWD ? 1 : (int)(strtoul(code, NULL, 10) & 255);
    end_command(s);
}

/* One answer is three terminated fields: mark, code, directory. The guest can write to the FIFO as
 * well: what stands before our mark is skipped. */
static bool take_answer(struct silt_session *s)
{
    char mark[16];
    int len = snprintf(mark, sizeof(mark), "%u", s->mark);
    const char *at = memmem(s->text, s->text_len, mark, (size_t)len + 1);
    if (at == NULL)
        return false;
    silt_slice rest = {at, s->text_len - (size_t)(at - s->text)};
    silt_slice fields[3];
    for (int i = 0; i < 3; i++)
        if (!silt_slice_split(&rest, 0, &fields[i]) || rest.data == NULL)
            return false;
    on_answer(s, fields[1].data, fields[2]);
    memmove(s->text, rest.data, rest.len);
    s->text_len = rest.len;
    return true;
}

static void on_status(struct silt_watch *w, uint32_t events)
{
    struct silt_session *s = silt_container_of(w, struct silt_session, status);
    enum { TAIL = 16 }; /* may be the beginning of an answer */
    (void)events;
    ssize_t n = read(w->fd, s->text + s->text_len, sizeof(s->text) - s->text_len);
    if (n <= 0)
        return;
    s->text_len += (size_t)n;
    while (s->state != SILT_SESSION_GONE && take_answer(s))
        ;
    if (s->text_len == sizeof(s->text)) {
        memmove(s->text, s->text + sizeof(s->text) - TAIL, TAIL);
        s->text_len = TAIL;
    }
}

/* ---- requests ---- */

static int prepare_command(struct silt_session *s, struct silt_exec *x, struct silt_lines *lines,
                           struct silt_error *e)
{
    struct silt_shell sh = next_mark(s);
    if (silt_shell_foreground(lines, &sh, &x->start, e) < 0)
        return -1;
    if (open_fifo(s, 0, e) < 0 || open_fifo(s, 1, e) < 0)
        return -1;
    if (x->start.head.timeout_ms == 0)
        return 0;
    silt_id_set_take(&s->before, s->handle);
    silt_id_set_remove(&s->before, s->shell.child.pid);
    x->deadline.on_time = on_deadline;
    silt_loop_after(&s->agent->loop, &x->deadline, x->start.head.timeout_ms);
    return 0;
}

static void start_command(struct silt_session *s, struct silt_exec *x)
{
    struct silt_lines lines;
    struct silt_error e;
    if (prepare_command(s, x, &lines, &e) < 0) {
        silt_close_fd(&s->out[0].write);
        silt_close_fd(&s->out[1].write);
        silt_exec_fail(x, &e);
        return;
    }
    s->state = SILT_SESSION_RUNNING;
    s->exec = x;
    s->in_file = lines.in_file;
    s->doubts = 0;
    x->state = SILT_EXEC_RUNNING;
    x->outlet.on_dry = on_dry;
    if (!write_lines(s, &lines))
        (void)kill(s->shell.child.pid, SIGKILL); /* it does not read any more */
    silt_start_fini(&x->start);
    silt_exec_say_started(x, s->shell.child.pid);
    silt_outlet_open(&x->outlet, x->id, s->out[0].read, s->out[1].read);
    s->timer.on_time = on_doubt;
    silt_loop_after(&s->agent->loop, &s->timer, DOUBT_MS);
}

static void on_save_late(struct silt_timer *t)
{
    struct silt_session *s = silt_container_of(t, struct silt_session, timer);
    fail_saving(s, SILT_TIMEOUT, "the session's shell does not answer");
}

static void start_saving(struct silt_session *s, struct silt_exec *x)
{
    struct silt_lines lines;
    struct silt_shell sh = next_mark(s);
    silt_shell_save(&lines, &sh);
    s->state = SILT_SESSION_SAVING;
    s->exec = x;
    s->timer.on_time = on_save_late;
    silt_loop_after(&s->agent->loop, &s->timer, SAVE_MS);
    if (!write_lines(s, &lines))
        fail_saving(s, SILT_GONE, "the session's shell does not read");
}

void silt_session_exec(struct silt_session *s, struct silt_exec *x)
{
    struct silt_error e;
    if (s->state != SILT_SESSION_IDLE || s->dead) {
        (void)silt_fail(&e, SILT_CONFLICT, "the session is busy");
        silt_exec_fail(x, &e);
    } else if (x->start.head.mode == SILT_EXEC_FOREGROUND) {
        start_command(s, x);
    } else {
        start_saving(s, x);
    }
}

static int begin(struct silt_session *s, struct silt_handle *h, struct silt_error *e)
{
    char name[8];
    int status;
    s->handle = h;
    s->state = SILT_SESSION_IDLE;
    silt_shell_name(s->slot, SILT_SHELL_STATUS, name);
    if (silt_folder_fifo(s->agent->folder, name, O_RDWR, &status, e) < 0)
        return -1;
    s->status = (struct silt_watch){.fd = status, .on_ready = on_status};
    silt_loop_watch(&s->agent->loop, &s->status, EPOLLIN);
    return start_shell(s, e);
}

static void begin_or_fail(struct silt_session *s, struct silt_handle *h)
{
    struct silt_error e;
    if (begin(s, h, &e) == 0)
        return;
    silt_agent_say_failed(s->agent, s->id, &e);
    leave(s);
}

static void on_handle(struct silt_handle_wait *w, struct silt_handle *h)
{
    begin_or_fail(silt_container_of(w, struct silt_session, wait), h);
}

static void on_no_handle(struct silt_handle_wait *w)
{
    struct silt_session *s = silt_container_of(w, struct silt_session, wait);
    struct silt_error e;
    (void)silt_fail(&e, SILT_LIMIT, "%d commands run in this sandbox already", SILT_HANDLES_MAX);
    silt_agent_say_failed(s->agent, s->id, &e);
    leave(s);
}

struct silt_session *silt_session_find(struct silt_agent *a, uint64_t id)
{
    silt_list_each(it, &a->sessions) {
        struct silt_session *s = silt_container_of(it, struct silt_session, link);
        if (s->id == id)
            return s;
    }
    return NULL;
}

static int free_slot(struct silt_agent *a, uint64_t id, unsigned *ret, struct silt_error *e)
{
    uint64_t used = 0;
    if (silt_session_find(a, id) != NULL)
        return silt_fail(e, SILT_CONFLICT, "session %llu is open already", (unsigned long long)id);
    _Static_assert(SILT_SESSIONS_MAX == 64, "one bit per session");
    silt_list_each(it, &a->sessions)
        used |= 1ULL << silt_container_of(it, struct silt_session, link)->slot;
    if (~used == 0)
        return silt_fail(e, SILT_LIMIT, "%d sessions in this sandbox already", SILT_SESSIONS_MAX);
    *ret = (unsigned)__builtin_ctzll(~used);
    return 0;
}

static struct silt_session *new_session(struct silt_agent *a, unsigned slot, struct silt_start *start)
{
    struct silt_session *s = calloc(1, sizeof(*s));
    char *note = malloc(start->note.len + 1);
    if (s == NULL || note == NULL)
        abort();
    if (start->note.len > 0)
        memcpy(note, start->note.data, start->note.len);
    s->agent = a;
    s->slot = slot;
    s->note = (silt_slice){note, start->note.len};
    s->start = *start;
    *start = (struct silt_start){0};
    s->grave.free = free_session;
    s->in = s->status.fd = s->shell.report.fd = -1;
    for (int i = 0; i < 2; i++)
        s->out[i] = (struct silt_fifo){.read = -1, .write = -1};
    silt_list_append(&a->sessions, &s->link);
    return s;
}

void silt_session_open(struct silt_agent *a, uint64_t id, struct silt_start *start)
{
    struct silt_error e;
    unsigned slot;
    if (free_slot(a, id, &slot, &e) < 0) {
        silt_agent_say_failed(a, id, &e);
        silt_start_fini(start);
        return;
    }
    struct silt_session *s = new_session(a, slot, start);
    s->id = id;
    s->wait.on_handle = on_handle;
    s->wait.on_none = on_no_handle;
    struct silt_handle *h = silt_handles_want(&a->handles, &s->wait);
    if (h != NULL)
        begin_or_fail(s, h);
}

static void on_farewell_over(struct silt_timer *t)
{
    struct silt_session *s = silt_container_of(t, struct silt_session, timer);
    purge(s, NULL);
}

/* A command that still runs here ends with its shell; nobody waits for its output any more. */
static void drop_exec(struct silt_session *s)
{
    struct silt_exec *x = s->exec;
    s->exec = NULL;
    if (x == NULL)
        return;
    silt_outlet_abandon(&x->outlet);
    x->end.code = -1;
    x->end.flags |= SILT_END_SHELL;
    silt_exec_end(x, (silt_slice){NULL, 0});
}

void silt_session_close(struct silt_session *s)
{
    bool gently = s->state == SILT_SESSION_IDLE;
    if (s->state == SILT_SESSION_CLOSING)
        return;
    if (s->state == SILT_SESSION_WAITING) {
        say_end(s, SILT_AGENT_CLOSED);
        leave(s);
        return;
    }
    s->state = SILT_SESSION_CLOSING;
    silt_purge_stop(&s->purge);
    drop_exec(s);
    if (s->state != SILT_SESSION_CLOSING)
        return; /* that was all that kept it */
    silt_close_fd(&s->in);
    s->timer.on_time = on_farewell_over;
    if (s->shell.child.pid > 0)
        (void)kill(s->shell.child.pid, gently ? SIGTERM : SIGKILL);
    if (s->dead)
        purge(s, NULL);
    else
        silt_loop_after(&s->agent->loop, &s->timer, FAREWELL_MS);
}

void silt_session_exec_left(struct silt_agent *a, uint64_t id)
{
    struct silt_session *s = id != 0 ? silt_session_find(a, id) : NULL;
    if (s != NULL)
        close_if_empty(s);
}

void silt_session_say_info(const struct silt_session *s)
{
    struct silt_agent_session_info info = {
        .pid = s->shell.child.pid,
        .note_len = (uint32_t)s->note.len,
        .busy_exec = s->exec != NULL && s->state != SILT_SESSION_SAVING ? s->exec->id : 0,
    };
    struct silt_say say = {.type = SILT_AGENT_SESSION_INFO,
                           .id = s->id,
                           .head = {(const char *)&info, sizeof(info)},
                           .tail = s->note};
    silt_channel_say(&s->agent->channel, &say);
}
