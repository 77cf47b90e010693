/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/process/process.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/process/log_follower.h"
#include "sandbox/process/table.h"
#include "sandbox/core/facet.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMEOUT_CODE = 124 }; /* as timeout(1) */

/* The end. */

static void set_remark(struct silt_process *p, const struct silt_agent_end *end)
{
    silt_auto_buf b;
    silt_buf_init(&b, 128);
    if ((end->flags & SILT_END_TIMEOUT) && p->timeout_ms > 0)
        silt_buf_addf(&b, "Command timed out after %ums\n", p->timeout_ms);
    else if (end->flags & SILT_END_TIMEOUT)
        silt_buf_addf(&b, "Command timed out\n");
    free(p->row.remark);
    p->row.remark = b.len > 0 ? strndup(b.data, b.len) : NULL;
}

static const char *cause_of(const struct silt_agent_end *end)
{
    return end->flags & SILT_END_OOM       ? "oom"
           : end->flags & SILT_END_TIMEOUT ? "timeout"
           : end->flags & SILT_END_PIDS    ? "pids"
           : end->flags & SILT_END_TCP     ? "tcp_memory"
           : end->signal != 0              ? "signal"
                                           : "";
}

static void enter(struct silt_process *p,
                  enum silt_process_status next) /* the only place that assigns it */
{
    p->row.status = next;
    if (!silt_process_is_over(p))
        return;
    p->settling = false;
    p->exec = NULL;
    p->session = NULL;
    p->row.log_bytes = silt_process_table_log_bytes(p);
    silt_process_table_clean_up_later(p);
    p->busy++;
    silt_log_follower_wake_all(p);
    p->busy--;
    /* After its readers are told: if siltd dies before, the log still knows the end. */
    silt_process_table_save(p);
}

static enum silt_process_status status_of(const struct silt_process *p,
                                          const struct silt_agent_end *end)
{
    int32_t code = p->row.exit_code;
    if (p->orphaned || code < 0)
        return SILT_PROCESS_ERROR;
    if (p->killed || (end->flags & SILT_END_TIMEOUT) || code == 128 + SIGKILL
        || code == 128 + SIGTERM)
        return SILT_PROCESS_KILLED;
    return code == 0 ? SILT_PROCESS_COMPLETED : SILT_PROCESS_FAILED;
}

void silt_process_on_end(struct silt_process *p, const struct silt_agent_end *end, int64_t ended_ms)
{
    bool known = end->code >= 0 && end->code <= 255;
    p->end = *end;
    p->row.exit_code = end->flags & SILT_END_TIMEOUT ? TIMEOUT_CODE
                       : known                       ? end->code
                       : p->killed                   ? 128 + SIGKILL
                                                     : -1;
    p->row.signal = end->signal > 0 && end->signal < 65 ? end->signal : 0;
    p->row.ended_ms = ended_ms;
    (void)snprintf(p->row.cause, sizeof(p->row.cause), "%s",
                   p->orphaned ? "destroyed" : cause_of(end));
    enum silt_process_status status = status_of(p, end);
    if (status == SILT_PROCESS_ERROR)
        p->row.exit_code = -1;
    set_remark(p, end);
    enter(p, status);
    silt_process_table_tell(p, SILT_PROCESS_ENDED, NULL);
    silt_process_unuse(p);
}

void silt_process_on_lost(struct silt_process *p, const char *cause)
{
    p->row.exit_code = -1;
    p->row.ended_ms = silt_clock_wall_ms();
    if (p->sandbox->state == SILT_SANDBOX_DESTROYING)
        cause = "destroyed";
    (void)snprintf(p->row.cause, sizeof(p->row.cause), "%s", cause[0] != 0 ? cause : "crash");
    enter(p, SILT_PROCESS_ERROR);
    silt_process_table_tell(p, SILT_PROCESS_ENDED, NULL);
    silt_process_unuse(p);
}

static void could_not_start(struct silt_process *p, const struct silt_error *e)
{
    free(p->row.remark);
    p->row.remark = strdup(e->text);
    p->row.ended_ms = silt_clock_wall_ms();
    if (p->killed)
        (void)snprintf(p->row.cause, sizeof(p->row.cause), "signal");
    enter(p, p->killed ? SILT_PROCESS_KILLED : SILT_PROCESS_ERROR);
    silt_process_table_tell(p, SILT_PROCESS_NOT_STARTED, e);
    silt_process_unuse(p);
}

/* Callbacks of its exec. */

static void is_started(struct silt_process *p, int32_t pid)
{
    p->row.pid = pid;
    /* Not earlier: while it waits for its turn, the session may get another shell. */
    p->session_number = p->session != NULL ? p->session->number : 0;
    p->session = NULL;
    /* Not saved: found running, it is known to have started. */
    enter(p, SILT_PROCESS_RUNNING);
    if (p->doomed_by != 0)
        silt_process_kill(p, p->doomed_by, p->doomed_grace_ms);
    if (p->log != NULL && silt_list_empty(&p->follows)
        && p->sandbox->registry->open_logs > SILT_OPEN_LOGS_MAX) {
        silt_log_file_leave(p->log);
        p->log = NULL;
        p->log_state = SILT_PROCESS_LOG_UNKNOWN;
    }
    silt_process_table_tell(p, SILT_PROCESS_STARTED, NULL);
    if (p->holds && p->holder == NULL && p->exec != NULL)
        silt_exec_detach(p->exec); /* its reader has already left */
}

static void on_started(struct silt_exec_sink *sink, int32_t pid)
{
    is_started(silt_outer(sink, struct silt_process, sink), pid);
}

static void on_logged(struct silt_exec_sink *sink)
{
    struct silt_process *p = silt_outer(sink, struct silt_process, sink);
    p->told_to_follow = false;
    silt_log_follower_wake_all(p);
}

static void on_flushed(struct silt_exec_sink *sink)
{
    struct silt_process *p = silt_outer(sink, struct silt_process, sink);
    silt_flush_on_answer(p);
    silt_log_follower_wake_flushed(p);
}

static void on_stdin_taken(struct silt_exec_sink *sink, uint64_t n, bool closed)
{
    struct silt_process *p = silt_outer(sink, struct silt_process, sink);
    (void)n;
    p->stdin_owed = false;
    if (p->in != NULL)
        p->in->on_taken(p->in, closed);
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *end)
{
    struct silt_process *p = silt_outer(sink, struct silt_process, sink);
    p->exec = NULL;
    if (p->row.status == SILT_PROCESS_STARTING && (end->flags & SILT_END_SHELL)) {
        p->row.exit_code = end->code;
        silt_process_table_tell(p, SILT_PROCESS_NO_SHELL, NULL);
        silt_process_table_remove(p);
        return;
    }
    if (p->row.status == SILT_PROCESS_STARTING)
        is_started(p, 0);
    silt_process_on_end(p, end, silt_clock_wall_ms());
}

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    struct silt_process *p = silt_outer(sink, struct silt_process, sink);
    p->exec = NULL;
    if (p->row.status == SILT_PROCESS_STARTING)
        could_not_start(p, e);
    else
        silt_process_on_lost(p, p->sandbox->row.death.cause);
}

static const struct silt_exec_sink sink_of_a_process = {
    .started = on_started,
    .logged = on_logged,
    .flushed = on_flushed,
    .stdin_taken = on_stdin_taken,
    .ended = on_ended,
    .failed = on_failed,
};

/* The start. */

bool silt_process_id_is_good(silt_slice id)
{
    static const char *const routes[] = {"start", "list", "kill-all", ".",
                                         ".."}; /* or what clients make of them */
    for (size_t i = 0; i < id.len; i++) {
        char c = id.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && !silt_is_any(c, "._:@-"))
            return false;
    }
    for (size_t i = 0; i < SILT_COUNT(routes); i++)
        if (silt_slice_eq(id, silt_slice_of(routes[i])))
            return false;
    return id.len > 0 && id.len <= SILT_PROCESS_ID_MAX;
}

static void make_id(struct silt_process *p, bool terminal)
{
    char random[7];
    silt_id_random(random, 6);
    (void)snprintf(p->row.id, sizeof(p->row.id), "%sproc_%lld_%s", terminal ? "/" : "",
                   (long long)silt_clock_wall_ms(), random);
}

/* Does not split a character. */
static char *cut(silt_slice text, size_t max)
{
    size_t len = text.len < max ? text.len : max;
    while (len < text.len && len > 0 && ((unsigned char)text.data[len] & 0xc0) == 0x80)
        len--;
    char *copy = strndup(len > 0 ? text.data : "", len);
    if (copy == NULL)
        abort();
    return copy;
}

static char *command_of(const struct silt_process_request *q)
{
    if ((q->exec.flags & SILT_START_ARGV) == 0)
        return cut(q->exec.command, SILT_PROCESS_COMMAND_MAX);
    size_t len = q->exec.command.len - (q->exec.command.len > 0); /* without the last NUL */
    len = len < SILT_PROCESS_COMMAND_MAX ? len : SILT_PROCESS_COMMAND_MAX;
    char *copy = malloc(len + 1);
    if (copy == NULL)
        abort();
    for (size_t i = 0; i < len; i++)
        copy[i] = q->exec.command.data[i] != 0 ? q->exec.command.data[i] : ' ';
    copy[len] = 0;
    return copy;
}

static void fill(struct silt_process *p, struct silt_session *session,
                 const struct silt_process_request *q)
{
    struct silt_process_row *row = &p->row;
    row->number = silt_registry_number(p->sandbox->registry);
    row->slot = p->sandbox->row.slot;
    row->command = command_of(q);
    row->session = q->session.len > 0 ? cut(q->session, SILT_SESSION_NAME_MAX) : NULL;
    row->auto_cleanup = q->auto_cleanup;
    row->exit_code = -1;
    row->started_ms = silt_clock_wall_ms();
    p->session = session;
    p->timeout_ms = q->exec.timeout_ms;
    p->holds = (q->exec.flags & SILT_START_HOLD) != 0;
    if (q->id.len > 0)
        memcpy(row->id, q->id.data, q->id.len);
    else
        make_id(p, q->exec.terminal != 0);
}

static void on_log_made(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_process *p = context;
    struct silt_error e;
    silt_auto_fd fd = nfds > 0 ? fds[0] : -1;
    p->busy--;
    if (p->exec != NULL && fd >= 0) {
        p->log = silt_log_file_new(p->sandbox->registry, silt_take_fd(&fd));
        p->log_state = SILT_PROCESS_LOG_OPEN;
        silt_exec_give_log(p->exec, p->log->fd);
    } else if (p->exec != NULL) {
        if (a->ok)
            (void)silt_fail(&e, SILT_PROTOCOL, "silt-priv sent no log");
        else
            e = a->body.error;
        (void)silt_because(&e, "make the log of process %s", p->row.id);
        (void)silt_exec_abort(p->exec, &e);
    } else if (fd >= 0 && p->sandbox->phase != SILT_SANDBOX_IS_GONE && !p->listed) {
        silt_process_table_remove_log(p);
    }
    struct silt_sandbox *s = p->sandbox;
    silt_process_unuse(p);
    silt_sandbox_release(s);
}

static void ask_for_a_log(struct silt_process *p)
{
    struct silt_priv_request q = {.op = SILT_PRIV_LOG, .slot = p->row.slot};
    q.body.log = (struct silt_priv_log){.number = p->row.number, .fresh = 1};
    p->busy++;
    silt_sandbox_hold(p->sandbox);
    silt_priv_ask(p->sandbox->registry->priv, &q, NULL, 0, on_log_made, p);
}

int silt_process_start(struct silt_sandbox *s, struct silt_session *session,
                       const struct silt_process_request *q, struct silt_process_watch *w,
                       struct silt_process **ret, struct silt_error *e)
{
    struct silt_process *old = silt_process_find(s, q->id);
    if (old != NULL && !silt_process_is_over(old))
        return silt_fail(e, SILT_CONFLICT, "process '%s' is still running", old->row.id);
    if (silt_store_admit(s->registry->store, e) < 0 || silt_process_table_make_room(s, e) < 0)
        return -1;
    struct silt_process *p = silt_process_table_new(s);
    p->sink = sink_of_a_process;
    fill(p, session, q);
    struct silt_exec_request request = q->exec;
    request.number = p->row.number;
    request.flags |= SILT_START_LOG;
    silt_process_watch(p, w);
    *ret = p; /* before any callback */
    p->busy++;
    int result = silt_exec_start(s, session, &request, &p->sink, &p->exec, e);
    p->busy--;
    if (result < 0) {
        silt_process_unwatch(w);
        silt_process_table_unlist(p);
    }
    old = result < 0 ? NULL : silt_process_find(s, q->id);
    if (old != NULL && old != p)
        silt_process_table_remove(old); /* the new process takes over the name */
    if (p->exec != NULL) {
        struct silt_error unwritten;
        ask_for_a_log(p);
        /* While silt-priv is busy. The command waits for its log, so it has not begun yet. */
        if (silt_process_table_store(p, &unwritten) < 0)
            (void)silt_exec_abort(p->exec, &unwritten);
    }
    silt_process_unuse(p);
    return result;
}

static bool adopt_exec(struct silt_sandbox *s, uint64_t number,
                       const struct silt_agent_exec_info *info)
{
    silt_list_each(it, &s->processes)
    {
        struct silt_process *p = silt_outer(it, struct silt_process, link);
        if (p->row.number != number || silt_process_is_over(p) || p->exec != NULL || p->settling)
            continue;
        p->sink = sink_of_a_process;
        p->exec = silt_exec_adopt(
            s, number, silt_process_is_terminal(p) ? SILT_EXEC_TERMINAL : SILT_EXEC_COMMAND,
            &p->sink);
        p->row.pid = info->pid;
        p->session_number = info->session;
        enter(p, SILT_PROCESS_RUNNING);
        silt_process_open_log(p); /* its size counts */
        return true;
    }
    return false;
}

void silt_process_kill(struct silt_process *p, int signal, uint32_t grace_ms)
{
    struct silt_error e;
    p->killed = p->killed || grace_ms > 0 || signal == SIGKILL;
    if (p->exec == NULL)
        return;
    if (p->row.status == SILT_PROCESS_RUNNING) {
        silt_exec_kill(p->exec, signal, grace_ms);
        return;
    }
    (void)silt_fail(&e, SILT_CONFLICT, "process %s was killed before it began", p->row.id);
    if (!silt_exec_abort(p->exec, &e)) {
        p->doomed_by = signal;
        p->doomed_grace_ms = grace_ms;
    }
}

void silt_process_write(struct silt_process *p, silt_slice bytes, bool close)
{
    assert(!p->stdin_owed && p->exec != NULL);
    p->stdin_owed = true;
    silt_exec_stdin(p->exec, bytes, close);
}

static void on_session_ended(struct silt_sandbox *s, uint64_t session)
{
    silt_list_each(it, &s->processes)
    {
        struct silt_process *p = silt_outer(it, struct silt_process, link);
        if (p->session_number != session || p->row.status != SILT_PROCESS_RUNNING
            || p->exec == NULL)
            continue;
        p->orphaned = true;
        silt_exec_kill(p->exec, SIGKILL, 0);
    }
}

/* ---- the core's callbacks ---- */

static void load_row(void *context, struct silt_process_row *row)
{
    struct silt_registry *r = context;
    struct silt_sandbox *s = row->slot < r->settings.slots ? r->by_slot[row->slot] : NULL;
    if (s == NULL)
        silt_process_row_fini(row);
    else
        silt_process_table_load(s, row);
}

static int load(struct silt_registry *r, struct silt_error *e)
{
    return silt_store_each_process(r->store, load_row, r, e);
}

/* Those its agent had not reported yet. */
static void settle_ended(struct silt_sandbox *s, const struct silt_error *why)
{
    (void)why;
    silt_process_settle_all(s);
}

const struct silt_facet silt_process_facet = {
    .load = load,
    .settle = silt_process_settle_all,
    .on_ended = settle_ended,
    .on_removed = silt_process_table_forget_all,
    .save = silt_process_table_save_all,
    .forget = silt_process_table_forget_all,
    .adopt_exec = adopt_exec,
    .on_session_ended = on_session_ended,
};
