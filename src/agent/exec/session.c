/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/session.h"
#include "agent/exec/background.h"
#include "agent/exec/exported.h"
#include "agent/shell/dev_silt.h"
#include "agent/exec/foreground.h"
#include "agent/spawn/proc.h"
#include "agent/exec/spare_shell.h"
#include "agent/exec/sweep.h"
#include "agent/spawn/user.h"
#include "base/clock.h"
#include "base/own.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

enum { FAREWELL_MS = 1000 }; /* between SIGTERM and SIGKILL when a session is closed */

void silt_session_remove_file(const struct silt_session *s, enum silt_shell_file file)
{
    char name[SILT_DEV_SILT_NAME_SIZE];
    silt_shell_name(s->slot, file, name);
    silt_dev_silt_remove(s->agent->directory, name);
}

int silt_session_place_state(struct silt_session *s, struct silt_error *e)
{
    char name[SILT_DEV_SILT_NAME_SIZE];
    silt_auto_fd fd = -1;
    silt_shell_name(s->slot, SILT_SHELL_STATE, name);
    return s->user[0] == 0 ? 0 : silt_dev_silt_create(s->agent->directory, name, s->owner, &fd, e);
}

/* ---- closing ---- */

static void free_session(struct silt_grave *g)
{
    struct silt_session *s = silt_outer(g, struct silt_session, grave);
    silt_start_frame_fini(&s->start);
    silt_id_set_free(&s->before);
    silt_shell_inputs_fini(&s->gates);
    silt_close_fd(&s->kept);
    silt_close_fd(&s->status.fd);
    for (int i = 0; i < 2; i++) {
        silt_close_fd(&s->out[i].read);
        silt_close_fd(&s->out[i].write);
    }
    silt_free_ptr(&s->note.data);
    free(s->cwd);
    free(s);
}

static void fail_next(struct silt_session *s)
{
    struct silt_exec *x = s->next;
    struct silt_error e;
    s->next = NULL;
    if (x == NULL)
        return;
    (void)silt_fail(&e, SILT_GONE, "the session's shell ended");
    silt_exec_fail(x, &e);
}

static void sweep_group(struct silt_session *s, int signal, int64_t grace_ms);

/* The only place that assigns it. What a sweep could not do yet is done before any next command can
 * start: that one must not be ended, too. */
void silt_session_enter(struct silt_session *s, enum silt_session_state next)
{
    s->state = next;
    if (next != SILT_SESSION_IDLE || !s->due.is_due || s->dead)
        return;
    int64_t left_ms = s->due.kill_ms - silt_clock_ms();
    s->due.is_due = false;
    sweep_group(s, s->due.signal, left_ms > 0 ? left_ms : 0);
}

static void leave(struct silt_session *s)
{
    static const enum silt_shell_file files[] = {
        SILT_SHELL_GATE, SILT_SHELL_GATE + 1, SILT_SHELL_IN,    SILT_SHELL_IN + 1,  SILT_SHELL_OUT,
        SILT_SHELL_ERR,  SILT_SHELL_STATUS,   SILT_SHELL_STATE, SILT_SHELL_EXPORTED};
    struct silt_agent *a = s->agent;
    silt_session_enter(s, SILT_SESSION_GONE);
    silt_list_remove(&s->link);
    silt_loop_cancel(&a->loop, &s->timer);
    silt_exported_fini(s);
    silt_loop_forget(&a->loop, &s->status);
    silt_kill_tree_stop(&s->purge);
    silt_handle_stop_waiting(&s->wait);
    silt_launch_forget(&s->shell);
    for (size_t i = 0; i < SILT_COUNT(files); i++)
        silt_session_remove_file(s, files[i]);
    /* Jobs that outlive the shell keep writing. */
    for (int i = 0; i < 2; i++)
        if (s->out[i].read >= 0)
            silt_drains_add(&a->drains, silt_take_fd(&s->out[i].read));
    silt_loop_bury(&a->loop, &s->grave);
    if (s->handle != NULL)
        silt_handle_leave(&a->handles, s->handle, s->id);
    if (s->handle != NULL && s->due.is_due)
        silt_sweep_left(a, s->handle);
    if (silt_list_empty(&a->sessions))
        silt_spare_shell_drop(a->spare);
}

static void say_closed(const struct silt_session *s)
{
    struct silt_say say = {.type = SILT_AGENT_CLOSED, .id = s->id};
    silt_channel_say(&s->agent->channel, &say);
}

/* Returns the number of its background commands still running. */
static size_t kill_background(const struct silt_session *s)
{
    size_t count = 0;
    silt_list_each(it, &s->agent->execs)
    {
        struct silt_exec *x = silt_outer(it, struct silt_exec, link);
        if (x == s->exec || x->start.head.session != s->id)
            continue;
        count++;
        silt_run_kill(x, SIGKILL, 0);
        if (x->log.fd >= 0)
            silt_output_drop(&x->outlet); /* a client that does not read must not keep it alive */
    }
    return count;
}

void silt_session_died(struct silt_session *s)
{
    struct silt_say say = {
        .type = SILT_AGENT_DIED, .id = s->id, .head = {(const char *)&s->death, sizeof(s->death)}};
    (void)kill_background(s);
    fail_next(s);
    leave(s);
    silt_channel_say(&s->agent->channel, &say);
}

static void close_if_empty(struct silt_session *s)
{
    if (s->state != SILT_SESSION_CLOSING || s->purge.running || !s->dead || kill_background(s) > 0
        || silt_sweep_has(s->agent, s->id))
        return;
    leave(s);
    say_closed(s);
}

static void run_next(struct silt_session *s)
{
    struct silt_exec *x = s->next;
    s->next = NULL;
    if (x != NULL)
        silt_session_exec(s, x);
}

static void on_clean(struct silt_kill_tree *p)
{
    struct silt_session *s = silt_outer(p, struct silt_session, purge);
    if (s->state == SILT_SESSION_EXPIRED)
        silt_foreground_clean(s);
    else if (s->state == SILT_SESSION_IDLE)
        run_next(s);
    else
        close_if_empty(s);
}

static void prepare_purge(struct silt_session *s)
{
    s->purge.loop = &s->agent->loop;
    s->purge.handle = s->handle;
    s->purge.keep = NULL;
    s->purge.spares = NULL;
    s->purge.on_clean = on_clean;
}

void silt_session_purge(struct silt_session *s, const struct silt_id_set *keep)
{
    prepare_purge(s);
    s->purge.keep = keep;
    silt_kill_tree_start(&s->purge, &s->agent->purges);
}

static bool is_shell(struct silt_kill_tree *p, pid_t id)
{
    return id == silt_outer(p, struct silt_session, purge)->shell.child.pid;
}

static void sweep_group(struct silt_session *s, int signal, int64_t grace_ms)
{
    if (!s->purge.running) /* otherwise an earlier sweep is, perhaps with a longer grace period */
        prepare_purge(s);
    s->purge.spares = is_shell;
    silt_kill_tree_gently(&s->purge, &s->agent->purges, signal, grace_ms);
}

/* Its shell is at work for us: it saves or loads its state. */
static void sweep_later(struct silt_session *s, int signal, int64_t grace_ms)
{
    int64_t kill_ms = silt_clock_ms() + grace_ms;
    if (s->due.is_due && s->due.kill_ms <= kill_ms)
        return;
    s->due = (struct silt_session_due){.is_due = true, .signal = signal, .kill_ms = kill_ms};
}

void silt_session_sweep(struct silt_session *s, int signal, int64_t grace_ms)
{
    switch (s->state) {
    case SILT_SESSION_RUNNING:
        silt_foreground_kill(s);
        return;
    case SILT_SESSION_IDLE:
    case SILT_SESSION_ENDING:
        sweep_group(s, signal, grace_ms);
        return;
    case SILT_SESSION_SAVING:
    case SILT_SESSION_EXPIRED:
    case SILT_SESSION_RELOADING:
        sweep_later(s, signal, grace_ms);
        return;
    case SILT_SESSION_WAITING: /* it has no group */
    case SILT_SESSION_CLOSING: /* everything ends anyway */
    case SILT_SESSION_GONE:
        return;
    }
}

bool silt_session_is_swept(const struct silt_session *s)
{
    return !s->purge.running && !s->due.is_due && s->state != SILT_SESSION_EXPIRED
           && s->state != SILT_SESSION_CLOSING;
}

static void on_farewell_over(struct silt_timer *t)
{
    silt_session_purge(silt_outer(t, struct silt_session, timer), NULL);
}

void silt_session_close(struct silt_session *s)
{
    bool gently = s->state == SILT_SESSION_IDLE;
    struct silt_error e;
    if (s->state == SILT_SESSION_CLOSING)
        return;
    if (s->state == SILT_SESSION_WAITING) {
        leave(s);
        say_closed(s);
        return;
    }
    if (s->state == SILT_SESSION_SAVING)
        silt_background_fail(s, SILT_GONE, "the session was closed");
    silt_session_enter(s, SILT_SESSION_CLOSING);
    fail_next(s);
    silt_kill_tree_stop(&s->purge);
    silt_sweep_session(s->agent, s->id);
    silt_foreground_drop(s);
    if (s->state != SILT_SESSION_CLOSING)
        return; /* nothing else kept it */
    (void)kill_background(s);
    if (s->dead) {
        silt_session_purge(s, NULL);
        return;
    }
    (void)kill(s->shell.child.pid, gently ? SIGTERM : SIGKILL);
    if (gently) /* a shell that ignores the signal reaches the end of its input */
        (void)silt_session_send(s, silt_shell_inputs_script(&s->gates), &e);
    s->timer.on_time = on_farewell_over;
    silt_loop_after(&s->agent->loop, &s->timer, FAREWELL_MS);
}

void silt_session_exec_left(struct silt_agent *a, uint64_t id)
{
    struct silt_session *s = id != 0 ? silt_session_find(a, id) : NULL;
    if (s != NULL)
        close_if_empty(s);
}

/* ---- the shell ---- */

struct silt_shell silt_session_next_shell(struct silt_session *s)
{
    s->mark = ++s->agent->marks;
    s->text_lost = false;
    return (struct silt_shell){.slot = s->slot, .turn = s->gates.turn ^ 1, .mark = s->mark};
}

bool silt_session_wake(const struct silt_session *s)
{
    pid_t pid = s->shell.child.pid;
    return pid > 0 && silt_proc_activity(pid) == 'T' && kill(pid, SIGCONT) == 0;
}

int silt_session_send(struct silt_session *s, struct silt_script *lines, struct silt_error *e)
{
    return silt_shell_inputs_send(&s->gates, lines, s->agent->directory, s->slot, e);
}

static void on_answer(struct silt_session *s, const struct silt_answer *a)
{
    if (!a->no_dir)
        silt_shell_inputs_shut(&s->gates, s->agent->directory, s->slot);
    if (s->state == SILT_SESSION_SAVING)
        silt_background_answer(s, a);
    else if (s->state == SILT_SESSION_RUNNING || s->state == SILT_SESSION_RELOADING)
        silt_foreground_answer(s, a);
}

static size_t take_answer(struct silt_session *s)
{
    struct silt_answer a;
    bool full = s->text_len == sizeof(s->text);
    size_t used = silt_shell_answer((silt_slice){s->text, s->text_len}, s->mark, full, &a);
    if (used > 0)
        on_answer(s, &a);
    return used;
}

static void drop_text(struct silt_session *s, size_t count)
{
    s->text_len -= count;
    memmove(s->text, s->text + count, s->text_len);
}

static void on_status(struct silt_watch *w, uint32_t events)
{
    struct silt_session *s = silt_outer(w, struct silt_session, status);
    (void)events;
    ssize_t n = read(w->fd, s->text + s->text_len, sizeof(s->text) - s->text_len);
    if (n <= 0)
        return;
    s->text_len += (size_t)n;
    for (size_t used; s->state != SILT_SESSION_GONE && (used = take_answer(s)) > 0;)
        drop_text(s, used);
    if (s->text_len == sizeof(s->text)) {
        drop_text(s, silt_shell_junk((silt_slice){s->text, s->text_len}, s->mark));
        s->text_lost = true;
    }
}

static void on_started(struct silt_launch *l)
{
    struct silt_session *s = silt_outer(l, struct silt_session, shell);
    int32_t pid = l->child.pid;
    struct silt_say say = {
        .type = SILT_AGENT_OPENED, .id = s->id, .head = {(const char *)&pid, sizeof(pid)}};
    silt_start_frame_fini(&s->start);
    if (!s->opened && s->state != SILT_SESSION_CLOSING)
        silt_channel_say(&s->agent->channel, &say);
    s->opened = true;
}

static void fail(struct silt_session *s, const struct silt_error *e)
{
    struct silt_exec *x = s->exec;
    s->exec = NULL;
    if (x != NULL)
        silt_exec_fail(x, e);
    fail_next(s);
    leave(s);
    silt_channel_say_failed(&s->agent->channel, s->id, e);
}

static void on_failed(struct silt_launch *l, bool no_dir, const struct silt_error *e)
{
    struct silt_session *s = silt_outer(l, struct silt_session, shell);
    (void)no_dir;
    s->dead = true;
    s->death = (struct silt_agent_end){.code = -1};
    if (s->state == SILT_SESSION_RELOADING)
        silt_foreground_shell_ended(s);
    else if (s->state == SILT_SESSION_CLOSING)
        silt_session_purge(s, NULL);
    else
        fail(s, e);
}

static void on_exited(struct silt_launch *l, int status)
{
    struct silt_session *s = silt_outer(l, struct silt_session, shell);
    s->dead = true;
    s->death = (struct silt_agent_end){0};
    silt_exec_set_status(&s->death, status);
    switch (s->state) {
    case SILT_SESSION_RUNNING:
    case SILT_SESSION_EXPIRED:
    case SILT_SESSION_RELOADING:
        silt_foreground_shell_ended(s);
        return;
    case SILT_SESSION_SAVING:
        silt_background_fail(s, SILT_GONE, "the session's shell ended");
        silt_session_died(s);
        return;
    case SILT_SESSION_CLOSING:
        silt_session_purge(s, NULL);
        return;
    case SILT_SESSION_ENDING: /* reported after the command has ended */
    case SILT_SESSION_GONE:
        return;
    case SILT_SESSION_WAITING:
    case SILT_SESSION_IDLE:
        silt_session_died(s);
        return;
    }
}

int silt_session_launch(struct silt_session *s, struct silt_spawn *spawn, struct silt_error *e)
{
    silt_auto_fd first = -1;
    if (silt_shell_inputs_make(&s->gates, s->agent->directory, s->slot, s->owner, &first, e) < 0)
        return -1;
    spawn->path = SILT_SHELL_PATH;
    spawn->argv = silt_shell_argv();
    spawn->in = first;
    spawn->user = s->user[0] != 0 ? s->user : NULL;
    spawn->out = spawn->err = -1; /* output of its own, outside any command, is noise */
    for (size_t i = 0; i < SILT_SPAWN_EXTRA; i++)
        spawn->extra[i] = -1;
    spawn->handle = s->handle;
    spawn->joins = &s->agent->joins;
    s->shell = (struct silt_launch){
        .loop = &s->agent->loop,
        .children = &s->agent->children,
        .on_started = on_started,
        .on_failed = on_failed,
        .on_exited = on_exited,
    };
    if (silt_launch_start(&s->shell, spawn, e) < 0)
        return -1;
    s->dead = false;
    return 0;
}

/* ---- opening ---- */

static int start_shell(struct silt_session *s, const char *own_home, struct silt_error *e)
{
    char cwd[PATH_MAX];
    silt_auto_free char **envp = NULL;
    const char *home = silt_start_frame_getenv(&s->start, "HOME");
    if (silt_slice_to_cstr(s->start.cwd, cwd, sizeof(cwd), e) < 0
        || silt_start_frame_envp(&s->start, &envp, e) < 0)
        return -1;
    struct silt_spawn spawn = {
        .envp = envp,
        .dirs = {s->start.cwd.len > 0 ? cwd : SILT_WORKSPACE, home != NULL ? home : own_home,
                 own_home, "/"},
    };
    return silt_session_launch(s, &spawn, e);
}

/* Looked up here, because the files in /dev/silt must belong to this user. */
static int know_user(struct silt_session *s, const char **ret_home, struct silt_error *e)
{
    static struct silt_user user;
    if (silt_slice_to_cstr(s->start.user, s->user, sizeof(s->user), e) < 0)
        return -1;
    *ret_home = s->user[0] == 0 ? "/root" : user.home;
    if (s->user[0] == 0)
        return 0;
    if (silt_user_look_up(s->user, &user, e) < 0)
        return -1;
    s->owner = (struct silt_owner){user.uid, user.gid};
    return silt_dev_silt_admit(s->agent->directory, e);
}

static int begin(struct silt_session *s, struct silt_handle *h, struct silt_error *e)
{
    char name[SILT_DEV_SILT_NAME_SIZE];
    int status;
    const char *home;
    s->handle = h;
    silt_session_enter(s, SILT_SESSION_IDLE);
    if (know_user(s, &home, e) < 0)
        return -1;
    silt_shell_name(s->slot, SILT_SHELL_STATUS, name);
    if (silt_dev_silt_fifo(s->agent->directory, name, s->owner, O_RDWR, &status, e) < 0)
        return -1;
    s->status = (struct silt_watch){.fd = status, .on_ready = on_status};
    silt_loop_watch(&s->agent->loop, &s->status, EPOLLIN);
    if (silt_exported_begin(s, e) < 0)
        return -1;
    return start_shell(s, home, e);
}

static void begin_or_fail(struct silt_session *s, struct silt_handle *h)
{
    struct silt_error e;
    if (begin(s, h, &e) < 0)
        fail(s, &e);
}

static void on_handle(struct silt_handle_wait *w, struct silt_handle *h)
{
    begin_or_fail(silt_outer(w, struct silt_session, wait), h);
}

static void on_no_handle(struct silt_handle_wait *w)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_LIMIT, "%d commands run in this sandbox already", SILT_HANDLES_MAX);
    fail(silt_outer(w, struct silt_session, wait), &e);
}

struct silt_session *silt_session_find(struct silt_agent *a, uint64_t id)
{
    silt_list_each(it, &a->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        if (s->id == id)
            return s;
    }
    return NULL;
}

static int free_slot(struct silt_agent *a, uint64_t id, unsigned *ret, struct silt_error *e)
{
    uint64_t used = 0;
    _Static_assert(SILT_SESSIONS_MAX == 64, "one bit per session");
    if (silt_session_find(a, id) != NULL)
        return silt_fail(e, SILT_CONFLICT, "session %llu is open already", (unsigned long long)id);
    silt_list_each(it, &a->sessions) used |= 1ULL
                                             << silt_outer(it, struct silt_session, link)->slot;
    if (~used == 0)
        return silt_fail(e, SILT_LIMIT, "%d sessions in this sandbox already", SILT_SESSIONS_MAX);
    *ret = (unsigned)__builtin_ctzll(~used);
    return 0;
}

static struct silt_session *new_session(struct silt_agent *a, unsigned slot,
                                        struct silt_start_frame *start)
{
    struct silt_session *s = calloc(1, sizeof(*s));
    char *note = malloc(start->note.len + 1);
    if (s == NULL || note == NULL)
        abort();
    if (start->note.len > 0)
        memcpy(note, start->note.data, start->note.len);
    s->agent = a;
    s->born = a->sweep;
    s->slot = slot;
    s->note = (silt_slice){note, start->note.len};
    s->start = silt_start_frame_take(start);
    s->grave.free = free_session;
    s->status.fd = s->shell.report.fd = s->kept = s->exported.file = -1;
    silt_shell_inputs_init(&s->gates);
    for (int i = 0; i < 2; i++)
        s->out[i] = (struct silt_fifo){.read = -1, .write = -1};
    silt_list_append(&a->sessions, &s->link);
    return s;
}

void silt_session_open(struct silt_agent *a, uint64_t id, struct silt_start_frame *start)
{
    struct silt_error e;
    unsigned slot;
    if (free_slot(a, id, &slot, &e) < 0) {
        silt_channel_say_failed(&a->channel, id, &e);
        silt_start_frame_fini(start);
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

void silt_session_exec(struct silt_session *s, struct silt_exec *x)
{
    struct silt_error e;
    if (s->state == SILT_SESSION_IDLE && s->purge.running && s->next == NULL) {
        s->next = x; /* otherwise it would be counted among those to end */
        return;
    }
    if (s->state != SILT_SESSION_IDLE || s->purge.running || s->dead
        || silt_shell_inputs_are_open(&s->gates)) {
        (void)silt_fail(&e, SILT_CONFLICT, "the session is busy");
        silt_exec_fail(x, &e);
    } else if (x->start.head.mode == SILT_EXEC_FOREGROUND) {
        silt_foreground_start(s, x);
    } else {
        silt_background_start(s, x);
    }
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
