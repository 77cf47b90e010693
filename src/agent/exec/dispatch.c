/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch: the table of siltd's requests. A frame that violates the protocol is siltd's bug: it is
 * answered with FAILED if there is something to answer, and otherwise ignored. */
#include "agent/exec/exported.h"
#include "agent/exec/session.h"
#include "agent/exec/sweep.h"
#include "agent/exec/terminal.h"
#include "agent/exec/worker.h"
#include "base/own.h"

#include <signal.h>

struct asked {
    struct silt_agent *agent;
    const struct silt_frame *frame;
    size_t body_len;
    struct silt_parcel *parcel;
};

static uint64_t number(const struct asked *q)
{
    uint64_t n;
    memcpy(&n, q->frame->body, sizeof(n));
    return n;
}

static void say_epoch(const struct asked *q, uint32_t type)
{
    uint64_t epoch = number(q);
    struct silt_say s = {.type = type, .head = {(const char *)&epoch, sizeof(epoch)}};
    silt_channel_say(&q->agent->channel, &s);
}

static void say_exec_info(const struct silt_exec *x)
{
    struct silt_agent_exec_info info = {
        .session = x->start.head.session,
        .mode = x->start.head.mode,
        .pid = x->pid,
    };
    struct silt_say s = {
        .type = SILT_AGENT_EXEC_INFO, .id = x->id, .head = {(const char *)&info, sizeof(info)}};
    silt_channel_say(&x->agent->channel, &s);
}

static void on_hello(const struct asked *q)
{
    struct silt_agent *a = q->agent;
    silt_channel_forget(&a->channel);
    say_epoch(q, SILT_AGENT_WELCOME);
    silt_list_each(it, &a->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        if (s->state != SILT_SESSION_CLOSING)
            silt_session_say_info(s);
    }
    silt_list_each(it, &a->execs)
    {
        struct silt_exec *x = silt_outer(it, struct silt_exec, link);
        say_exec_info(x);
        silt_output_renew(&x->outlet);
        silt_flush_stop(x);
        silt_input_renew(&x->input);
    }
    silt_exported_renew(a);
    say_epoch(q, SILT_AGENT_READY);
    silt_handles_ask_again(&a->handles);
}

static void on_handles(const struct asked *q)
{
    int count = q->parcel->nfds;
    q->parcel->nfds = 0; /* taken */
    silt_handles_add(&q->agent->handles, q->parcel->fds, (size_t)count);
}

static void on_open(const struct asked *q)
{
    struct silt_start_frame start;
    struct silt_error e;
    if (silt_start_frame_parse(&start, q->frame, q->body_len, q->parcel, &e) < 0)
        silt_channel_say_failed(&q->agent->channel, q->frame->id, &e);
    else
        silt_session_open(q->agent, q->frame->id, &start);
}

static void on_close(const struct asked *q)
{
    struct silt_session *s = silt_session_find(q->agent, q->frame->id);
    struct silt_say closed = {.type = SILT_AGENT_CLOSED, .id = q->frame->id};
    if (s != NULL)
        silt_session_close(s);
    else
        silt_channel_say(&q->agent->channel, &closed); /* it ended by itself in the meantime */
}

static int check_exec(const struct asked *q, const struct silt_start_frame *start,
                      struct silt_session **ret_session, struct silt_error *e)
{
    size_t count = 0;
    silt_list_each(it, &q->agent->execs) count++;
    if (count >= SILT_HANDLES_MAX + SILT_SESSIONS_MAX)
        return silt_fail(e, SILT_LIMIT, "%zu commands run in this sandbox already", count);
    if (silt_exec_find(q->agent, q->frame->id) != NULL)
        return silt_fail(e, SILT_PROTOCOL, "exec %llu runs already",
                         (unsigned long long)q->frame->id);
    if (start->head.mode == SILT_EXEC_PLAIN)
        return 0;
    *ret_session = silt_session_find(q->agent, start->head.session);
    if (*ret_session == NULL)
        return silt_fail(e, SILT_GONE, "the session's shell ended");
    return 0;
}

static void on_exec(const struct asked *q)
{
    struct silt_session *session = NULL;
    struct silt_start_frame start;
    struct silt_error e;
    if (silt_start_frame_parse(&start, q->frame, q->body_len, q->parcel, &e) < 0
        || check_exec(q, &start, &session, &e) < 0) {
        silt_start_frame_fini(&start);
        silt_channel_say_failed(&q->agent->channel, q->frame->id, &e);
        return;
    }
    struct silt_exec *x = silt_exec_new(q->agent, q->frame->id, &start);
    if (session != NULL)
        silt_session_exec(session, x);
    else
        silt_run_start(x);
}

static void on_adopt(const struct asked *q)
{
    struct silt_start_frame start = {.head = {.mode = SILT_EXEC_PLAIN, .flags = SILT_START_PIPES},
                                     .log = -1,
                                     .secret = -1,
                                     .out = -1,
                                     .err = -1,
                                     .lines = -1};
    struct silt_session *none = NULL;
    struct silt_error e;
    int32_t pid;
    int count = q->parcel->nfds;
    memcpy(&pid, q->frame->body, sizeof(pid));
    if (count != 1 + (q->agent->handles.mode == 1 ? SILT_HANDLE_FDS_V1 : SILT_HANDLE_FDS_V2)
        || pid <= 1)
        (void)silt_fail(&e, SILT_PROTOCOL, "process %d with %d descriptors", (int)pid, count);
    else if (check_exec(q, &start, &none, &e) == 0) {
        q->parcel->nfds = 0; /* taken */
        silt_run_adopt(silt_exec_new(q->agent, q->frame->id, &start), pid, q->parcel->fds,
                       (size_t)count);
        return;
    }
    silt_channel_say_failed(&q->agent->channel, q->frame->id, &e);
}

static void on_credit(const struct asked *q)
{
    struct silt_exec *x = silt_exec_find(q->agent, q->frame->id);
    if (x != NULL)
        silt_output_credit(&x->outlet, number(q));
}

static void on_detach(const struct asked *q)
{
    struct silt_exec *x = silt_exec_find(q->agent, q->frame->id);
    if (x != NULL)
        silt_output_drop(&x->outlet);
}

static void on_follow(const struct asked *q)
{
    struct silt_exec *x = silt_exec_find(q->agent, q->frame->id);
    if (x != NULL)
        silt_output_follow(&x->outlet, number(q));
}

static void on_stdin(const struct asked *q)
{
    struct silt_exec *x = silt_exec_find(q->agent, q->frame->id);
    if (x != NULL)
        silt_input_add(&x->input, (silt_slice){q->frame->body, q->body_len},
                       (q->frame->flags & SILT_STDIN_LAST) != 0);
}

static void on_resize(const struct asked *q)
{
    struct silt_exec *x = silt_exec_find(q->agent, q->frame->id);
    uint32_t size;
    memcpy(&size, q->frame->body, sizeof(size));
    if (x == NULL || x->start.head.terminal == 0 || size == 0)
        return;
    x->start.head.terminal = size; /* the terminal may not exist yet */
    if (x->out >= 0)
        silt_terminal_resize(x->out, size);
}

static void on_kill(const struct asked *q)
{
    struct silt_exec *x = silt_exec_find(q->agent, q->frame->id);
    struct silt_agent_kill k;
    memcpy(&k, q->frame->body, sizeof(k));
    if (x == NULL || x->start.head.mode == SILT_EXEC_FOREGROUND || k.signal < 1 || k.signal >= NSIG)
        return;
    if (k.target == SILT_KILL_GROUP)
        silt_run_interrupt(x, (int)k.signal);
    else if (k.target == SILT_KILL_LEADER)
        silt_run_signal(x, (int)k.signal);
    else
        silt_run_kill(x, (int)k.signal, k.grace_ms);
}

static void on_sweep(const struct asked *q)
{
    struct silt_agent_sweep how;
    memcpy(&how, q->frame->body, sizeof(how));
    if (how.signal < NSIG && how.pid >= 0)
        silt_sweep_start(q->agent, q->frame->id, &how);
}

static void on_worker(const struct asked *q)
{
    struct silt_error e;
    if (q->parcel->nfds != 1) {
        (void)silt_fail(&e, SILT_PROTOCOL, "worker with %d descriptors", q->parcel->nfds);
        silt_channel_say_failed(&q->agent->channel, q->frame->id, &e);
        return;
    }
    q->parcel->nfds = 0; /* taken */
    silt_worker_start(q->agent, q->frame->id,
                      (silt_slice){(const char *)q->frame->body, q->body_len}, q->parcel->fds[0]);
}

static void on_worker_kill(const struct asked *q)
{
    silt_worker_kill(q->agent, q->frame->id);
}

static void on_ping(const struct asked *q)
{
    struct silt_say s = {.type = SILT_AGENT_PONG, .id = q->frame->id};
    struct silt_exec *x =
        (q->frame->flags & SILT_PING_FLUSH) != 0 ? silt_exec_find(q->agent, q->frame->id) : NULL;
    if ((q->frame->flags & SILT_PING_EXPORTED) != 0 && q->frame->id != 0) {
        silt_exported_flush(q->agent, q->frame->id);
        return;
    }
    if (x != NULL && x->log.fd >= 0 && x->handle != NULL && x->outlet.state != SILT_OUTPUT_CLOSED) {
        silt_flush_ask(x);
        return;
    }
    silt_channel_say(&q->agent->channel, &s);
}

static const struct ask {
    size_t body; /* minimum */
    void (*run)(const struct asked *q);
} asks[SILT_AGENT_ASK_MAX] = {
    [SILT_AGENT_HELLO] = {sizeof(uint64_t), on_hello},
    [SILT_AGENT_HANDLES] = {0, on_handles},
    [SILT_AGENT_OPEN] = {0, on_open},
    [SILT_AGENT_CLOSE] = {0, on_close},
    [SILT_AGENT_EXEC] = {0, on_exec},
    [SILT_AGENT_CREDIT] = {sizeof(uint64_t), on_credit},
    [SILT_AGENT_DETACH] = {0, on_detach},
    [SILT_AGENT_KILL] = {sizeof(struct silt_agent_kill), on_kill},
    [SILT_AGENT_STDIN] = {0, on_stdin},
    [SILT_AGENT_FOLLOW] = {sizeof(uint64_t), on_follow},
    [SILT_AGENT_WORKER] = {0, on_worker},
    [SILT_AGENT_WORKER_KILL] = {0, on_worker_kill},
    [SILT_AGENT_PING] = {0, on_ping},
    [SILT_AGENT_ADOPT] = {sizeof(int32_t), on_adopt},
    [SILT_AGENT_RESIZE] = {sizeof(uint32_t), on_resize},
    [SILT_AGENT_SWEEP] = {sizeof(struct silt_agent_sweep), on_sweep},
};

void silt_dispatch_frame(struct silt_channel *c, const struct silt_frame *f, size_t body_len,
                         struct silt_parcel *p)
{
    struct asked q = {
        .agent = silt_outer(c, struct silt_agent, channel),
        .frame = f,
        .body_len = body_len,
        .parcel = p,
    };
    if (f->type < SILT_AGENT_ASK_MAX && asks[f->type].run != NULL
        && body_len >= asks[f->type].body) {
        asks[f->type].run(&q);
        return;
    }
    struct silt_error e;
    (void)silt_fail(&e, SILT_PROTOCOL, "frame of type %u with %zu bytes", f->type, body_len);
    silt_channel_say_failed(&q.agent->channel, f->id, &e);
}
