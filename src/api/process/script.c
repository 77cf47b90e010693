/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process/script.h"

#include <stdlib.h>

enum { ERR_MAX = 4096 };

struct silt_script {
    struct silt_exec_sink sink;
    struct silt_exec *exec;
    struct silt_call *call;       /* lives as long as the request */
    struct silt_sandbox *sandbox; /* borrowed, held */
    void (*done)(struct silt_call *c, const struct silt_script_end *end);
    struct silt_buf out, err;
    bool cut;
};

static void free_script(struct silt_script *k)
{
    silt_buf_fini(&k->out);
    silt_buf_fini(&k->err);
    silt_sandbox_release(k->sandbox);
    free(k);
}

static void on_gone(struct silt_http_request *r)
{
    struct silt_script *k = r->owner;
    if (k->exec != NULL)
        silt_exec_leave(k->exec);
    free_script(k);
}

static void keep(struct silt_script *k, struct silt_buf *b, silt_slice bytes)
{
    size_t room = b->max - b->len;
    k->cut = k->cut || bytes.len > room;
    silt_buf_add(b, (silt_slice){bytes.data, bytes.len < room ? bytes.len : room});
}

static void on_output(struct silt_exec_sink *sink, int stream, silt_slice bytes)
{
    struct silt_script *k = silt_outer(sink, struct silt_script, sink);
    keep(k, stream == 2 ? &k->err : &k->out, bytes);
    silt_exec_credit(k->exec, bytes.len);
}

static void finish(struct silt_script *k, struct silt_script_end *end)
{
    struct silt_call *c = k->call;
    c->request->on_gone = NULL;
    end->out = silt_buf_slice(&k->out);
    end->err = silt_buf_slice(&k->err);
    end->cut = k->cut;
    k->done(c, end);
    free_script(k);
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *e)
{
    struct silt_script_end end = {.code = e->code >= 0 ? e->code : 1,
                                  .timed_out = (e->flags & SILT_END_TIMEOUT) != 0,
                                  .shell_ended = (e->flags & SILT_END_SHELL) != 0};
    finish(silt_outer(sink, struct silt_script, sink), &end);
}

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    struct silt_script_end end = {.code = -1, .error = *e};
    finish(silt_outer(sink, struct silt_script, sink), &end);
}

void silt_script_run(struct silt_call *c, const struct silt_script_wish *w)
{
    struct silt_error e;
    struct silt_exec_request q = {.mode = w->session == NULL ? SILT_EXEC_PLAIN
                                          : w->foreground    ? SILT_EXEC_FOREGROUND
                                                             : SILT_EXEC_BACKGROUND,
                                  .command = w->text,
                                  .timeout_ms = w->timeout_ms};
    struct silt_script *k = calloc(1, sizeof(*k));
    if (k == NULL)
        abort();
    *k = (struct silt_script){
        .sink = {.output = on_output, .ended = on_ended, .failed = on_failed},
        .call = c,
        .sandbox = c->sandbox,
        .done = w->done,
    };
    silt_buf_init(&k->out, w->out_max);
    silt_buf_init(&k->err, ERR_MAX);
    silt_sandbox_hold(k->sandbox);
    c->request->owner = k;
    c->request->on_gone = on_gone;
    if (silt_exec_start(k->sandbox, w->session, &q, &k->sink, &k->exec, &e) < 0)
        on_failed(&k->sink, &e); /* otherwise it may have ended already */
}
