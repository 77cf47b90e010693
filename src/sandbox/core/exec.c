/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/exec.h"
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/core/facet.h"
#include "sandbox/core/image.h"
#include "sandbox/core/start_frame.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CREDIT_AT = SILT_EXEC_WINDOW / 4,
    EXECS_MAX = 1024, /* per sandbox, running or waiting */
};

/*   WAITING --its turn--> SENT --started--> RUNNING --ended--> DONE
 *       \--no session--/     \--failed------------------------/
 * A foreground command whose sink has no `started` is RUNNING as soon as it is sent. */
enum state { WAITING, SENT, RUNNING, DONE };

struct silt_exec {
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_session *session; /* borrowed; NULL after it has left */
    struct silt_exec_sink *sink;  /* borrowed; NULL: output is discarded */
    struct silt_link link;
    struct silt_turn turn;
    enum state state;
    uint64_t number;
    struct silt_start_frame start; /* slices of `parts` until sent */
    char *parts;
    char *record;                  /* until its turn; NULL: not recorded */
    struct silt_exec_guard *guard; /* borrowed; it waits for this */
    bool its_turn;         /* it has the session, or needs none, and waits only for its log */
    size_t unstarted;      /* bytes counted against SILT_UNSTARTED_MAX */
    size_t unacknowledged; /* output received and not credited back */
    size_t owed;           /* credit not sent yet */
    enum silt_exec_kind kind;
    int64_t begun_us; /* 0: by an earlier siltd */
    struct silt_grave grave;
};

static void free_exec(struct silt_grave *g)
{
    struct silt_exec *x = silt_outer(g, struct silt_exec, grave);
    silt_close_fd(&x->start.secret);
    free(x->parts);
    free(x->record);
    free(x);
}

static void leave_session(struct silt_exec *x)
{
    struct silt_session *session = x->session;
    x->session = NULL;
    if (session != NULL)
        silt_session_leave(session, &x->turn);
}

static void is_started(struct silt_exec *x)
{
    x->sandbox->registry->unstarted_bytes -= x->unstarted;
    x->unstarted = 0;
}

/* Frees the exec. The sink has had its last callback, or there is none. */
static void finish(struct silt_exec *x)
{
    assert(x->state != DONE);
    x->state = DONE;
    is_started(x);
    if (x->guard != NULL)
        x->guard->exec = NULL;
    x->guard = NULL;
    silt_list_remove(&x->link);
    x->sandbox->exec_count--;
    if (x->start.mode == SILT_EXEC_FOREGROUND)
        silt_sandbox_release(x->sandbox);
    else if (x->kind != SILT_EXEC_CONTEXT) /* of a context, only its runs keep it awake */
        silt_sandbox_let_sleep(x->sandbox);
    silt_loop_bury(x->sandbox->registry->loop, &x->grave);
}

static void fail(struct silt_exec *x, const struct silt_error *e)
{
    struct silt_exec_sink *sink = x->sink;
    x->sink = NULL;
    finish(x);
    leave_session(x);
    if (sink != NULL)
        sink->failed(sink, e);
}

static void send_detach(struct silt_sandbox *s, uint64_t number)
{
    struct silt_frame_out f = {.type = SILT_AGENT_DETACH, .id = number};
    silt_channel_send(s, &f);
}

static void send_start(struct silt_exec *x)
{
    struct silt_error e;
    x->state = SENT;
    if (x->session != NULL) {
        x->start.session = x->session->number;
        if (x->start.timeout_ms == 0 && x->start.mode == SILT_EXEC_FOREGROUND)
            x->start.timeout_ms = x->session->timeout_ms;
    }
    bool quiet =
        x->start.mode == SILT_EXEC_FOREGROUND && (x->sink == NULL || x->sink->started == NULL);
    if (quiet)
        x->start.flags |= SILT_START_QUIET;
    if (silt_start_frame_send(x->sandbox, SILT_AGENT_EXEC, x->number, &x->start, &e) < 0) {
        fail(x, &e);
        return;
    }
    free(x->parts);
    x->parts = NULL;
    silt_close_fd(&x->start.secret);
    if (quiet) {
        x->state = RUNNING;
        is_started(x);
    }
    if (x->sink == NULL)
        send_detach(x->sandbox, x->number);
}

static void send_if_ready(struct silt_exec *x)
{
    bool has_log = (x->start.flags & SILT_START_LOG) == 0 || x->start.log >= 0;
    if (x->its_turn && has_log && x->guard == NULL && x->state == WAITING)
        send_start(x);
}

void silt_exec_delay(struct silt_exec *x, struct silt_exec_guard *g)
{
    assert(x->guard == NULL && x->state == WAITING);
    x->guard = g;
    g->exec = x;
}

void silt_exec_go(struct silt_exec_guard *g)
{
    struct silt_exec *x = g->exec;
    g->exec = NULL;
    if (x == NULL)
        return;
    x->guard = NULL;
    send_if_ready(x);
}

static void take_turn(struct silt_exec *x)
{
    char *record = x->record;
    x->its_turn = true;
    x->record = NULL;
    if (record != NULL)
        silt_facets_call(x->sandbox->registry, before_command, x->sandbox, x, x->number, record);
    free(record);
    send_if_ready(x);
}

void silt_exec_give_log(struct silt_exec *x, int log)
{
    assert(x->start.log < 0 && x->state == WAITING);
    x->start.log = log;
    send_if_ready(x);
}

static void on_turn(struct silt_turn *t, struct silt_session *session, const struct silt_error *e)
{
    struct silt_exec *x = silt_outer(t, struct silt_exec, turn);
    if (e == NULL) {
        take_turn(x);
        return;
    }
    x->session = NULL;
    if (session == NULL) {
        fail(x, e);
        return;
    }
    /* The shell ended between two commands: report it as if it had ended during this one. */
    struct silt_agent_end end = {.code = session->exit_code, .flags = SILT_END_SHELL};
    struct silt_exec_sink *sink = x->sink;
    x->sink = NULL;
    finish(x);
    if (sink != NULL)
        sink->ended(sink, &end);
}

static silt_slice copy_part(char **at, silt_slice part)
{
    silt_slice copy = {*at, part.len};
    if (part.len > 0)
        memcpy(*at, part.data, part.len);
    *at += part.len;
    return copy;
}

static void add_exec(struct silt_exec *x)
{
    silt_list_append(&x->sandbox->execs, &x->link);
    x->sandbox->exec_count++;
    if (x->start.mode == SILT_EXEC_FOREGROUND)
        silt_sandbox_hold(x->sandbox);
    else if (x->kind != SILT_EXEC_CONTEXT)
        silt_sandbox_keep_awake(x->sandbox);
}

static int check_room(const struct silt_sandbox *s, size_t command, size_t all,
                      struct silt_error *e)
{
    if (command > SILT_COMMAND_MAX)
        return silt_fail(e, SILT_LIMIT, "command of %zu bytes, at most %d", command,
                         SILT_COMMAND_MAX);
    if (s->exec_count >= EXECS_MAX)
        return silt_fail(e, SILT_LIMIT, "%d commands run or wait in this sandbox already",
                         EXECS_MAX);
    if (all > SILT_UNSTARTED_MAX - s->registry->unstarted_bytes)
        return silt_fail(e, SILT_LIMIT, "commands of %zu bytes wait to be started already",
                         s->registry->unstarted_bytes);
    return 0;
}

/* Arguments are joined by spaces. */
static char *dup_record(silt_slice text)
{
    size_t len = text.len < SILT_HISTORY_COMMAND_MAX ? text.len : SILT_HISTORY_COMMAND_MAX;
    while (len < text.len && len > 0 && ((unsigned char)text.data[len] & 0xc0) == 0x80)
        len--; /* whole characters */
    if (len > 0 && text.data[len - 1] == 0)
        len--;
    char *record = malloc(len + 1);
    if (record == NULL)
        abort();
    for (size_t i = 0; i < len; i++)
        record[i] = text.data[i] != 0 ? text.data[i] : ' ';
    record[len] = 0;
    return record;
}

int silt_exec_start(struct silt_sandbox *s, struct silt_session *session,
                    const struct silt_exec_request *q, struct silt_exec_sink *sink,
                    struct silt_exec **ret, struct silt_error *e)
{
    silt_auto_buf env;
    silt_buf_init(&env, SILT_START_MAX);
    silt_slice user = q->user.len > 0 || q->mode != SILT_EXEC_PLAIN ? q->user : silt_image_user(s);
    silt_slice cwd = q->cwd.len > 0 || q->mode != SILT_EXEC_PLAIN ? q->cwd : silt_image_workdir(s);
    if (q->mode == SILT_EXEC_PLAIN)
        silt_env_base(&env, s, user.len == 0);
    silt_env_merge(&env, q->env);
    size_t size = env.len + cwd.len + user.len + q->command.len;
    if (env.broken)
        return silt_fail(e, SILT_LIMIT, "environment of more than %d bytes", SILT_START_MAX);
    if (check_room(s, q->command.len, size, e) < 0)
        return -1;
    int secret = (q->flags & SILT_START_SECRET) != 0 ? fcntl(q->secret, F_DUPFD_CLOEXEC, 0) : -1;
    if (secret < 0 && (q->flags & SILT_START_SECRET) != 0)
        return silt_fail_errno(e, "keep a secret");
    struct silt_exec *x = calloc(1, sizeof(*x));
    char *at = malloc(size + 1);
    if (x == NULL || at == NULL)
        abort();
    *x =
        (struct silt_exec){.sandbox = s,
                           .session = session,
                           .sink = sink,
                           .turn = {.go = on_turn},
                           .number = q->number != 0 ? q->number : silt_registry_number(s->registry),
                           .parts = at,
                           .unstarted = size,
                           .kind = (q->flags & SILT_START_PIPES) != 0 ? SILT_EXEC_CONTEXT
                                   : q->terminal != 0                 ? SILT_EXEC_TERMINAL
                                                                      : SILT_EXEC_COMMAND,
                           .begun_us = silt_clock_us(),
                           .grave = {.free = free_exec}};
    x->start = (struct silt_start_frame){.session = q->from,
                                         .mode = q->mode,
                                         .timeout_ms = q->timeout_ms,
                                         .flags = q->flags,
                                         .terminal = q->terminal,
                                         .log = -1,
                                         .secret = secret,
                                         .out = q->out,
                                         .err = q->err,
                                         .lines = q->lines};
    x->start.env = copy_part(&at, silt_buf_slice(&env));
    x->start.cwd = copy_part(&at, cwd);
    x->start.user = copy_part(&at, user);
    x->start.command = copy_part(&at, q->command);
    s->registry->unstarted_bytes += size;
    s->registry->counts.execs++;
    s->execs_started++;
    add_exec(x);
    *ret = x; /* before any callback */
    x->record = s->row.auto_snapshot && q->record.len > 0 ? dup_record(q->record) : NULL;
    if (session != NULL)
        silt_session_enter(session, &x->turn);
    else
        take_turn(x);
    return 0;
}

static struct silt_exec *add_running(struct silt_sandbox *s, uint64_t number,
                                     enum silt_exec_kind kind, struct silt_exec_sink *sink)
{
    struct silt_exec *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    *x = (struct silt_exec){.sandbox = s,
                            .sink = sink,
                            .state = RUNNING,
                            .number = number,
                            .kind = kind,
                            .start = {.log = -1, .secret = -1},
                            .grave = {.free = free_exec}};
    add_exec(x);
    return x;
}

struct silt_exec *silt_exec_adopt(struct silt_sandbox *s, uint64_t number, enum silt_exec_kind kind,
                                  struct silt_exec_sink *sink)
{
    send_detach(s, number); /* the reader it waited for is gone */
    return add_running(s, number, kind, sink);
}

struct silt_exec *silt_exec_hand_over(struct silt_sandbox *s, uint64_t number, int32_t pid,
                                      const int *fds, int nfds, struct silt_exec_sink *sink)
{
    struct silt_frame_out f = {.type = SILT_AGENT_ADOPT,
                               .id = number,
                               .body = {(const char *)&pid, sizeof(pid)},
                               .fds = fds,
                               .nfds = nfds};
    s->registry->counts.execs++;
    s->execs_started++;
    silt_channel_send(s, &f);
    return add_running(s, number, SILT_EXEC_CONTEXT, sink);
}

bool silt_exec_abort(struct silt_exec *x, const struct silt_error *e)
{
    if (x->state != WAITING)
        return false;
    fail(x, e);
    return true;
}

static void tell(struct silt_exec *x, uint32_t type, uint32_t flags, silt_slice body)
{
    struct silt_frame_out f = {.type = type, .flags = flags, .id = x->number, .body = body};
    if (x->state == SENT || x->state == RUNNING)
        silt_channel_send(x->sandbox, &f);
}

static void tell_kill(struct silt_exec *x, const struct silt_agent_kill *how)
{
    tell(x, SILT_AGENT_KILL, 0, (silt_slice){(const char *)how, sizeof(*how)});
}

void silt_exec_kill(struct silt_exec *x, int signal, uint32_t grace_ms)
{
    struct silt_agent_kill how = {.signal = (uint32_t)signal, .grace_ms = grace_ms};
    tell_kill(x, &how);
}

void silt_exec_interrupt(struct silt_exec *x)
{
    struct silt_agent_kill how = {.signal = SIGINT, .target = SILT_KILL_GROUP};
    tell_kill(x, &how);
}

void silt_exec_signal(struct silt_exec *x, int signal)
{
    struct silt_agent_kill how = {.signal = (uint32_t)signal, .target = SILT_KILL_LEADER};
    tell_kill(x, &how);
}

void silt_exec_ping(struct silt_exec *x)
{
    tell(x, SILT_AGENT_PING, 0, (silt_slice){NULL, 0});
}

void silt_exec_flush(struct silt_exec *x)
{
    tell(x, SILT_AGENT_PING, SILT_PING_FLUSH, (silt_slice){NULL, 0});
}

void silt_exec_follow(struct silt_exec *x, uint64_t position)
{
    tell(x, SILT_AGENT_FOLLOW, 0, (silt_slice){(const char *)&position, sizeof(position)});
}

void silt_exec_stdin(struct silt_exec *x, silt_slice bytes, bool close)
{
    tell(x, SILT_AGENT_STDIN, close ? SILT_STDIN_LAST : 0, bytes);
}

void silt_exec_resize(struct silt_exec *x, uint32_t size)
{
    if (x->state == WAITING)
        x->start.terminal = size;
    tell(x, SILT_AGENT_RESIZE, 0, (silt_slice){(const char *)&size, sizeof(size)});
}

void silt_exec_detach(struct silt_exec *x)
{
    tell(x, SILT_AGENT_DETACH, 0, (silt_slice){NULL, 0});
}

void silt_exec_pass(struct silt_exec *x, struct silt_exec_sink *sink)
{
    x->sink = sink;
}

void silt_exec_credit(struct silt_exec *x, size_t n)
{
    assert(n <= x->unacknowledged - x->owed);
    x->owed += n;
    if (x->owed < CREDIT_AT || x->state == DONE)
        return;
    uint64_t bytes = x->owed;
    struct silt_frame_out f = {
        .type = SILT_AGENT_CREDIT, .id = x->number, .body = {(const char *)&bytes, sizeof(bytes)}};
    x->unacknowledged -= x->owed;
    x->owed = 0;
    silt_channel_send(x->sandbox, &f);
}

void silt_exec_leave(struct silt_exec *x)
{
    x->sink = NULL;
    if (x->state == SENT || x->state == RUNNING)
        send_detach(x->sandbox, x->number);
}

static void drop_all(struct silt_sandbox *s, const struct silt_error *e)
{
    while (!silt_list_empty(&s->execs)) {
        struct silt_exec *x = silt_list_first(&s->execs, struct silt_exec, link);
        fail(x, e);
    }
}

static void forget_all(struct silt_sandbox *s)
{
    silt_list_each(it, &s->execs)
    {
        struct silt_exec *x = silt_outer(it, struct silt_exec, link);
        is_started(x);
        free_exec(&x->grave);
    }
    silt_list_init(&s->execs);
}

static void on_output(struct silt_exec *x, const struct silt_frame *f, size_t len)
{
    if (x->sink == NULL || x->sink->output == NULL || len == 0)
        return;
    x->unacknowledged += len;
    if (x->unacknowledged > SILT_EXEC_WINDOW + SILT_FRAME_BODY_MAX
        || (f->flags != 1 && f->flags != 2)) {
        silt_sandbox_on_lost(x->sandbox, "the agent broke the protocol");
        return;
    }
    x->sandbox->registry->counts.out_bytes += len;
    x->sandbox->out_bytes += len;
    x->sink->output(x->sink, (int)f->flags, (silt_slice){f->body, len});
}

static void note_death(struct silt_exec *x, const struct silt_agent_end *end)
{
    struct silt_sandbox *s = x->sandbox;
    if ((end->flags & SILT_END_OOM) == 0)
        return;
    struct silt_death d = {.cause = "oom",
                           .at_ms = silt_clock_wall_ms(),
                           .exit_code = end->code,
                           .signal = end->signal,
                           .limit_bytes = s->row.limits.memory_bytes,
                           .peak_bytes = end->peak_bytes};
    (void)snprintf(d.message, sizeof(d.message),
                   "a process was killed because the sandbox used all of its %llu MiB of memory",
                   (unsigned long long)(s->row.limits.memory_bytes >> 20));
    s->registry->counts.oom_kills++;
    silt_facets_call(s->registry, on_out_of_memory, s);
    silt_sandbox_died(s, &d);
}

static void end(struct silt_exec *x, const struct silt_agent_end *how)
{
    struct silt_exec_sink *sink = x->sink;
    struct silt_session *session = x->session;
    x->sink = NULL;
    if (x->kind == SILT_EXEC_COMMAND && x->begun_us > 0)
        silt_timing_end(x->sandbox->registry, SILT_TIMING_EXEC, x->begun_us);
    if (x->sandbox->history_count > 0)
        silt_facets_call(x->sandbox->registry, after_command, x->sandbox, x->number, how->code);
    finish(x);
    if (session != NULL && (how->flags & SILT_END_SHELL)) {
        x->session = NULL;
        session->holder = NULL;
        silt_session_shell_ended(session);
    }
    leave_session(x);
    if (sink != NULL)
        sink->ended(sink, how);
}

static void on_ended(struct silt_exec *x, const struct silt_frame *f, size_t len)
{
    struct silt_agent_end how;
    struct silt_session *session = x->session;
    memcpy(&how, f->body, sizeof(how));
    silt_tcp_memory_explain(x->sandbox, &how);
    note_death(x, &how);
    if (session != NULL && (how.flags & SILT_END_RESTARTED))
        session->pid = 0; /* the new shell's pid is not reported */
    if (session != NULL && how.cwd_len > 0 && how.cwd_len < PATH_MAX
        && how.cwd_len == len - sizeof(how))
        silt_session_moved(session, (silt_slice){f->body + sizeof(how), how.cwd_len});
    end(x, &how);
}

static void on_failed(struct silt_exec *x, const struct silt_frame *f)
{
    struct silt_error e;
    memcpy(&e, f->body, sizeof(e));
    e.text[sizeof(e.text) - 1] = 0;
    if ((unsigned)e.code >= SILT_CODE_MAX)
        e.code = SILT_PROTOCOL;
    if (e.code != SILT_GONE || x->session == NULL) {
        fail(x, &e);
        return;
    }
    /* The shell had ended when the command reached it: report it as if it had ended during it. */
    struct silt_agent_end how = {.code = x->session->exit_code, .flags = SILT_END_SHELL};
    end(x, &how);
}

static void on_started(struct silt_exec *x, const struct silt_frame *f)
{
    int32_t pid;
    memcpy(&pid, f->body, sizeof(pid));
    if (x->state != SENT)
        return;
    x->state = RUNNING;
    is_started(x);
    if (x->sink != NULL && x->sink->started != NULL)
        x->sink->started(x->sink, pid); /* before the session's next turn, which may end it */
    if (x->start.mode == SILT_EXEC_BACKGROUND)
        leave_session(x);
}

static struct silt_exec *find(struct silt_sandbox *s, uint64_t number)
{
    silt_list_each(it, &s->execs)
    {
        struct silt_exec *x = silt_outer(it, struct silt_exec, link);
        if (x->number == number && x->state != WAITING)
            return x;
    }
    return NULL;
}

bool silt_exec_is_lasting(struct silt_sandbox *s, uint64_t number)
{
    const struct silt_exec *x = find(s, number);
    return x != NULL && x->kind != SILT_EXEC_COMMAND;
}

static void on_stdin_taken(struct silt_exec *x, const struct silt_frame *f)
{
    uint64_t n;
    memcpy(&n, f->body, sizeof(n));
    if (x->sink != NULL && x->sink->stdin_taken != NULL)
        x->sink->stdin_taken(x->sink, n, (f->flags & SILT_STDIN_GONE) != 0);
}

static bool adopt(struct silt_sandbox *s, uint64_t number, const struct silt_agent_exec_info *info)
{
    const struct silt_facets *facets = s->registry->facets;
    for (size_t i = 0; i < facets->count; i++)
        if (facets->of[i]->adopt_exec != NULL && facets->of[i]->adopt_exec(s, number, info))
            return true;
    return false;
}

static void on_stranger(struct silt_sandbox *s, const struct silt_frame *f)
{
    /* Started by a previous siltd, whose clients are gone. */
    struct silt_agent_exec_info info;
    if (f->type == SILT_AGENT_EXEC_INFO) {
        memcpy(&info, f->body, sizeof(info));
        if (!adopt(s, f->id, &info))
            send_detach(s, f->id);
    }
    if (f->type != SILT_AGENT_ENDED)
        return;
    struct silt_agent_end how;
    memcpy(&how, f->body, sizeof(how));
    silt_session_foreign_ended(s, f->id, (how.flags & SILT_END_RESTARTED) != 0);
}

static void on_frame(struct silt_sandbox *s, const struct silt_frame *f, size_t body_len)
{
    struct silt_exec *x = find(s, f->id);
    if (x == NULL) {
        on_stranger(s, f);
        return;
    }
    if (f->type == SILT_AGENT_STARTED) {
        on_started(x, f);
    } else if (f->type == SILT_AGENT_OUT) {
        on_output(x, f, body_len);
    } else if (f->type == SILT_AGENT_ENDED) {
        on_ended(x, f, body_len);
    } else if (f->type == SILT_AGENT_FAILED) {
        on_failed(x, f);
    } else if (f->type == SILT_AGENT_LOGGED) {
        if (x->sink != NULL && x->sink->logged != NULL)
            x->sink->logged(x->sink);
    } else if (f->type == SILT_AGENT_PONG) {
        if (x->sink != NULL && x->sink->flushed != NULL)
            x->sink->flushed(x->sink);
    } else if (f->type == SILT_AGENT_STDIN_TAKEN) {
        on_stdin_taken(x, f);
    }
}

const struct silt_facet silt_exec_facet = {
    .on_ended = drop_all,
    .forget = forget_all,
    .frames = SILT_FRAME_OF(SILT_AGENT_EXEC_INFO) | SILT_FRAME_OF(SILT_AGENT_STARTED)
              | SILT_FRAME_OF(SILT_AGENT_OUT) | SILT_FRAME_OF(SILT_AGENT_ENDED)
              | SILT_FRAME_OF(SILT_AGENT_LOGGED) | SILT_FRAME_OF(SILT_AGENT_STDIN_TAKEN)
              | SILT_FRAME_OF(SILT_AGENT_PONG) | SILT_FRAME_OF(SILT_AGENT_FAILED),
    .on_frame = on_frame,
};
