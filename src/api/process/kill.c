/* SPDX-License-Identifier: Apache-2.0 */
/* DELETE of one process or of all: answers once no process of their trees is left. */
#include "api/process/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LATE_MS =
        SILT_SWEEP_LATE_MS, /* after the grace period, for the kernel to end killed processes */
    ENDED_JSON_MAX = 128 << 20,
    GRACE_ALL_MS = 2000, /* for the /v1 route, which answers within five seconds */
    GRACE_MAX_MS = 600000,
};

struct kill;
struct victim {
    struct silt_process_watch watch;
    struct silt_process *process; /* borrowed: watched */
    struct kill *kill;
};

struct kill {
    struct silt_http_request *request; /* until on_gone */
    struct silt_sandbox *sandbox;      /* borrowed, held */
    struct silt_process *process;      /* a single kill; NULL: all */
    struct silt_timer deadline;
    bool native;
    struct silt_sweep sweep;   /* /v1 kill-all: processes without a record */
    struct silt_buf ended;     /* /v1 kill-all: processes to end, as JSON */
    size_t told;               /* /v1 kill-all: their number, including those that did not fit */
    uint32_t unended;          /* processes the sweep could not end */
    struct silt_error refused; /* why the sweep failed; SILT_OK: it did not */
    size_t count, left;
    struct victim victims[];
};

static void free_kill(struct kill *k)
{
    for (size_t i = 0; i < k->count; i++)
        silt_process_unwatch(&k->victims[i].watch);
    silt_sweep_leave(&k->sweep);
    silt_loop_cancel(k->sandbox->registry->loop, &k->deadline);
    silt_sandbox_release(k->sandbox);
    silt_buf_fini(&k->ended);
    free(k);
}

static void on_gone(struct silt_http_request *r)
{
    free_kill(r->owner); /* the processes are ended all the same */
}

static void answer_killed(struct silt_http_request *r, const struct silt_process *p)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("processId"));
    silt_json_string(&b, silt_slice_of(p->row.id));
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

static void answer_native(struct silt_http_request *r, const struct silt_process *p)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1 << 20);
    silt_process_json(&b, p, SILT_PROCESS_NATIVE);
    silt_api_answer(r, 200, &b);
}

static void answer_count(struct silt_http_request *r, size_t count)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("cleanedCount"));
    silt_json_u64(&b, count);
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

static void answer_ended(struct silt_http_request *r, size_t count, size_t left, silt_slice ended)
{
    silt_auto_buf b;
    silt_buf_init(&b, ENDED_JSON_MAX + 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("count"));
    silt_json_u64(&b, count);
    silt_json_key(&b, SILT_LIT("left"));
    silt_json_u64(&b, left);
    silt_json_key(&b, SILT_LIT("processes"));
    silt_json_open(&b, '[');
    if (ended.len > 0)
        silt_json_raw(&b, ended);
    silt_json_close(&b, ']');
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

static void answer(struct kill *k)
{
    struct silt_http_request *r = k->request;
    r->on_gone = NULL;
    if (k->refused.code != SILT_OK)
        silt_api_refuse_error(r, &k->refused);
    else if (k->process == NULL && k->native)
        answer_ended(r, k->told, k->left + k->unended, silt_buf_slice(&k->ended));
    else if (k->process == NULL)
        answer_count(r, k->count - k->left);
    else if (k->native)
        answer_native(r, k->process);
    else
        answer_killed(r, k->process);
    free_kill(k);
}

static void on_deadline(struct silt_timer *t)
{
    struct kill *k = silt_outer(t, struct kill, deadline);
    struct silt_http_request *r = k->request;
    if (k->process == NULL) {
        answer(k); /* processes that did not end are not counted */
        return;
    }
    r->on_gone = NULL;
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("processId"));
    silt_json_string(&b, silt_slice_of(k->process->row.id));
    silt_json_key(&b, SILT_LIT("stderr"));
    silt_json_string(&b, SILT_LIT("it has not ended"));
    silt_json_close(&b, '}');
    silt_api_refuse(r, SILT_API_PROCESS_FAILED, silt_buf_slice(&b),
                    "Process '%s' was killed and has not ended", k->process->row.id);
    free_kill(k);
}

static void on_event(struct silt_process_watch *w, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e)
{
    struct victim *v = silt_outer(w, struct victim, watch);
    (void)e;
    if (what == SILT_PROCESS_STARTED) {
        silt_process_watch(p, w); /* watched first: the signal is sent below */
        return;
    }
    struct kill *k = v->kill;
    if (k->process == NULL && k->native) {
        silt_process_json(&k->ended, p, SILT_PROCESS_NATIVE);
        k->told++;
    }
    if (--k->left == 0)
        answer(k);
}

static struct kill *new_kill(struct silt_call *c, size_t most)
{
    struct kill *k = calloc(1, sizeof(*k) + most * sizeof(k->victims[0]));
    if (k == NULL)
        abort();
    k->request = c->request;
    k->sandbox = c->sandbox;
    k->native = c->kind->native;
    k->deadline.on_time = on_deadline;
    silt_buf_init(&k->ended, ENDED_JSON_MAX);
    silt_sandbox_hold(k->sandbox);
    c->request->owner = k;
    c->request->on_gone = on_gone;
    return k;
}

static void add_victim(struct kill *k, struct silt_process *p)
{
    struct victim *v = &k->victims[k->count++];
    *v = (struct victim){.watch = {.on_event = on_event}, .process = p, .kill = k};
    k->left++;
    silt_process_watch(p, &v->watch);
}

void silt_process_end(struct silt_call *c, int signal, uint32_t grace_ms)
{
    struct silt_process *p = c->process;
    struct kill *k = new_kill(c, 1);
    k->process = p;
    add_victim(k, p);
    silt_loop_after(c->api->loop, &k->deadline, (int64_t)grace_ms + LATE_MS);
    silt_process_kill(p, signal, grace_ms); /* may call us back: `k` may be gone afterwards */
}

/* Signals. */

int silt_signal_of(silt_slice text)
{
    struct silt_error e;
    uint64_t n = 0;
    if (silt_slice_to_u64(text, 1, 64, &n, &e) == 0)
        return (int)n;
    if (text.len > 3 && silt_slice_ieq((silt_slice){text.data, 3}, SILT_LIT("SIG")))
        text = (silt_slice){text.data + 3, text.len - 3};
    for (int i = 1; i < NSIG; i++) {
        const char *name = sigabbrev_np(i);
        if (name != NULL && silt_slice_ieq(text, silt_slice_of(name)))
            return i;
    }
    return 0;
}

bool silt_signal_read(struct silt_call *c, int *ret)
{
    silt_slice raw = silt_query(c->request, SILT_LIT("signal")), text = {NULL, 0};
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("signal"));
    int signal = 0;
    if (raw.len > 0)
        signal = silt_query_decode(c->request, raw, &text) ? silt_signal_of(text) : 0;
    else if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    else if (v->type == SILT_JSON_STRING)
        signal = silt_signal_of(v->string);
    else if (v->type == SILT_JSON_INT && v->integer > 0 && v->integer < NSIG)
        signal = (int)v->integer;
    if (signal == 0) {
        silt_api_refuse_field(c->request, "signal", "must be the name or the number of a signal");
        return false;
    }
    *ret = signal;
    return true;
}

/* These signals ask a process to end; the others only notify it. */
static bool wants_an_end(int signal)
{
    return signal == SIGTERM || signal == SIGKILL || signal == SIGINT || signal == SIGQUIT
           || signal == SIGHUP || signal == SIGABRT;
}

void silt_process_refuse_finished(struct silt_call *c, const struct silt_process *p)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("command"));
    silt_json_string(&b, silt_slice_of(p->row.id));
    silt_json_close(&b, '}');
    silt_api_refuse(c->request, SILT_API_PROCESS_FINISHED, silt_buf_slice(&b),
                    "Command '%s' not found or already completed in session '%s'", p->row.id,
                    p->row.session != NULL ? p->row.session : "__DISABLE_SESSION__");
}

static void kill_one(struct silt_call *c)
{
    struct silt_process *p = c->process;
    int signal = SIGTERM;
    if (!silt_signal_read(c, &signal))
        return;
    if (silt_process_is_over(p)) {
        silt_process_refuse_finished(c, p);
    } else if (wants_an_end(signal)) {
        silt_process_end(c, signal, SILT_PROCESS_GRACE_MS);
    } else {
        silt_process_kill(p, signal, 0);
        answer_killed(c->request, p);
    }
}

static const struct silt_call_kind kill_call = {.body = SILT_BODY_OPTIONAL,
                                                .sandbox = SILT_CALL_LOOKS,
                                                .choose = silt_process_choose,
                                                .run = kill_one};

SILT_HANDLER(silt_api_process_kill)
{
    silt_process_call(r, args, &kill_call);
}

/* Terminals are in no list and end with their sessions. */
static bool is_victim(const struct silt_process *p)
{
    return !silt_process_is_over(p) && !silt_process_is_terminal(p);
}

static size_t count_running(const struct silt_sandbox *s)
{
    size_t running = 0;
    silt_list_each(it, &s->processes) running +=
        is_victim(silt_outer(it, struct silt_process, link));
    return running;
}

static void on_swept_one(struct silt_sweep *w, const struct silt_found *f)
{
    struct kill *k = silt_outer(w, struct kill, sweep);
    if (f->pid > 0)
        silt_found_json(&k->ended, f);
    k->told += f->count;
}

static void on_swept(struct silt_sweep *w, const struct silt_agent_swept *swept,
                     const struct silt_error *e)
{
    struct kill *k = silt_outer(w, struct kill, sweep);
    k->unended = swept != NULL ? swept->left : 0;
    if (swept == NULL
        && e->code
               != SILT_GONE) /* otherwise the sandbox has ended, and all its processes with it */
        k->refused = *e;
    if (--k->left == 0)
        answer(k);
}

/* Both kinds of kill-all; the /v1 one also ends processes without a record. */
static void end_all(struct silt_call *c, uint32_t grace_ms)
{
    struct silt_sandbox *s = c->sandbox;
    const struct silt_agent_sweep all = {.signal = SIGTERM, .grace_ms = grace_ms};
    struct kill *k = new_kill(c, count_running(s));
    k->left = 1; /* our own count: no callback may answer before all are signalled */
    silt_list_each(it, &s->processes)
    {
        struct silt_process *p = silt_outer(it, struct silt_process, link);
        if (is_victim(p))
            add_victim(k, p);
    }
    for (size_t i = 0; i < k->count; i++) /* not by list order: the end of one may unlink others */
        silt_process_kill(k->victims[i].process, grace_ms > 0 ? SIGTERM : SIGKILL, grace_ms);
    k->sweep = (struct silt_sweep){.on_found = on_swept_one, .on_done = on_swept};
    if (k->native && silt_sweep_start(s, &all, &k->sweep))
        k->left++;
    silt_loop_after(s->registry->loop, &k->deadline, (int64_t)grace_ms + LATE_MS);
    if (--k->left == 0)
        answer(k);
}

static void remove_ended(struct silt_call *c)
{
    size_t count = 0;
    silt_list_each(it, &c->sandbox->processes)
    {
        struct silt_process *p = silt_outer(it, struct silt_process, link);
        if (!silt_process_is_over(p))
            continue;
        silt_process_remove(p);
        count++;
    }
    answer_ended(c->request, count, 0, (silt_slice){NULL, 0});
}

static void v1_kill_all(struct silt_call *c)
{
    silt_slice state = silt_query(c->request, SILT_LIT("state"));
    uint64_t grace_ms = GRACE_ALL_MS;
    if (!silt_query_number(c, "graceMs", GRACE_MAX_MS, &grace_ms))
        return;
    if (silt_slice_eq(state, SILT_LIT("ended")))
        remove_ended(c);
    else if (state.len == 0 || silt_slice_eq(state, SILT_LIT("running")))
        end_all(c, (uint32_t)grace_ms);
    else
        silt_api_refuse_field(c->request, "state", "must be running or ended");
}

static const struct silt_call_kind v1_kill_all_call = {.sandbox = SILT_CALL_LOOKS,
                                                       .native = true,
                                                       .choose = silt_process_choose_all,
                                                       .run = v1_kill_all};

SILT_HANDLER(silt_api_v1_process_kill_all)
{
    silt_call_begin(r, args, &v1_kill_all_call);
}

static void kill_all(struct silt_call *c)
{
    if (c->sandbox == NULL)
        answer_count(c->request, 0);
    else
        end_all(c, SILT_PROCESS_GRACE_MS);
}

static const struct silt_call_kind kill_all_call = {
    .sandbox = SILT_CALL_LOOKS, .choose = silt_process_choose_all, .run = kill_all};

SILT_HANDLER(silt_api_process_kill_all)
{
    silt_call_begin(r, args, &kill_all_call);
}
