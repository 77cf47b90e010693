/* SPDX-License-Identifier: Apache-2.0 */
/* Signals or ends a process that has no record and was found in the control groups. */
#include "api/process/process.h"

#include <signal.h>
#include <stdlib.h>

enum { JSON_MAX = 16384 };

struct ending {
    struct silt_call *call;
    struct silt_sandbox *sandbox; /* borrowed, held */
    struct silt_sweep sweep;
    struct silt_timer deadline;
    struct silt_buf found; /* as JSON; empty: no such pid */
    int signal;            /* only this signal; 0: end the process */
};

static void free_ending(struct ending *x)
{
    silt_sweep_leave(&x->sweep);
    silt_loop_cancel(x->sandbox->registry->loop, &x->deadline);
    silt_sandbox_release(x->sandbox);
    silt_buf_fini(&x->found);
    free(x);
}

static void on_gone(struct silt_http_request *r)
{
    free_ending(r->owner);
}

static void answer_signal(struct ending *x)
{
    silt_auto_buf b;
    silt_buf_init(&b, JSON_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("id"));
    silt_json_string(&b, x->call->arg);
    silt_json_key(&b, SILT_LIT("signal"));
    silt_json_i64(&b, x->signal);
    silt_json_close(&b, '}');
    silt_api_answer(x->call->request, 200, &b);
}

static void refuse_late(struct ending *x)
{
    silt_auto_buf b;
    silt_buf_init(&b, JSON_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("processId"));
    silt_json_string(&b, x->call->arg);
    silt_json_key(&b, SILT_LIT("stderr"));
    silt_json_string(&b, SILT_LIT("it has not ended"));
    silt_json_close(&b, '}');
    silt_api_refuse(x->call->request, SILT_API_PROCESS_FAILED, silt_buf_slice(&b),
                    "Process '%.*s' was killed and has not ended", (int)x->call->arg.len,
                    x->call->arg.data);
}

static void answer(struct ending *x, bool ended)
{
    x->call->request->on_gone = NULL;
    if (x->found.len == 0)
        silt_process_refuse_unknown(x->call->request, x->call->arg);
    else if (!ended)
        refuse_late(x);
    else if (x->signal != 0)
        answer_signal(x);
    else
        silt_api_answer(x->call->request, 200, &x->found);
    free_ending(x);
}

static void on_late(struct silt_timer *t)
{
    answer(silt_outer(t, struct ending, deadline), false);
}

static void on_found(struct silt_sweep *w, const struct silt_found *f)
{
    if (f->pid > 0)
        silt_found_json(&silt_outer(w, struct ending, sweep)->found, f);
}

static void on_done(struct silt_sweep *w, const struct silt_agent_swept *swept,
                    const struct silt_error *e)
{
    struct ending *x = silt_outer(w, struct ending, sweep);
    if (swept == NULL
        && e->code != SILT_GONE) { /* otherwise the sandbox has ended, and the process with it */
        x->call->request->on_gone = NULL;
        silt_api_refuse_error(x->call->request, e);
        free_ending(x);
        return;
    }
    answer(x, swept == NULL || swept->left == 0);
}

static void begin(struct silt_call *c, struct silt_agent_sweep *how, bool only_signal)
{
    (void)silt_found_read_id(c->arg, &how->pid); /* it was chosen by that */
    struct ending *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    *x = (struct ending){.call = c,
                         .sandbox = c->sandbox,
                         .sweep = {.on_found = on_found, .on_done = on_done},
                         .deadline = {.on_time = on_late},
                         .signal = only_signal ? (int)how->signal : 0};
    silt_buf_init(&x->found, JSON_MAX);
    silt_sandbox_hold(x->sandbox);
    c->request->owner = x;
    c->request->on_gone = on_gone;
    silt_loop_after(c->api->loop, &x->deadline, (int64_t)how->grace_ms + SILT_SWEEP_LATE_MS);
    if (!silt_sweep_start(x->sandbox, how, &x->sweep))
        answer(x, true);
}

void silt_found_signal(struct silt_call *c, int signal)
{
    struct silt_agent_sweep how = {.signal = (uint32_t)signal};
    begin(c, &how, true);
}

void silt_found_end(struct silt_call *c, int signal, uint32_t grace_ms)
{
    struct silt_agent_sweep how = {.signal = (uint32_t)signal, .grace_ms = grace_ms};
    begin(c, &how, false);
}
