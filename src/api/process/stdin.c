/* SPDX-License-Identifier: Apache-2.0 */
/* PUT …/stdin: passes the body to a process's standard input as fast as the process reads, frame by
 * frame; if it does not read, the client is held back. */
#include "api/process/process.h"

#include <assert.h>
#include <stdlib.h>

enum { SILENCE_MS = 300000, PENDING_MAX = 1 << 20 };

struct writer {
    struct silt_stdin in;
    struct silt_process_watch watch;
    struct silt_http_request *request; /* until on_gone */
    struct silt_loop *loop;            /* borrowed */
    struct silt_process *process;      /* borrowed: watched */
    struct silt_timer silence;         /* the process has not read for a while */
    struct silt_buf pending;
    size_t sent;    /* part of `pending` already sent to the agent */
    uint64_t total; /* bytes the process has taken */
    bool close;     /* close stdin when everything is written */
    bool whole;     /* the whole body has arrived */
    bool closed;    /* the last frame has been sent */
};

static struct silt_http_request *let_go(struct writer *w)
{
    struct silt_http_request *r = w->request;
    r->on_gone = NULL;
    silt_loop_cancel(w->loop, &w->silence);
    silt_process_unwatch(&w->watch);
    w->process->in = NULL;
    silt_process_unuse(w->process);
    silt_buf_fini(&w->pending);
    free(w);
    return r;
}

static void on_gone(struct silt_http_request *r)
{
    (void)let_go(r->owner);
}

static void refuse(struct writer *w, enum silt_api_code code, const char *why)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("processId"));
    silt_json_string(&b, silt_slice_of(w->process->row.id));
    silt_json_key(&b, SILT_LIT("bytes"));
    silt_json_u64(&b, w->total);
    silt_json_close(&b, '}');
    silt_api_refuse(let_go(w), code, silt_buf_slice(&b), "%s", why);
}

static void answer(struct writer *w)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("id"));
    silt_json_string(&b, silt_slice_of(w->process->row.id));
    silt_json_key(&b, SILT_LIT("bytes"));
    silt_json_u64(&b, w->total);
    silt_json_key(&b, SILT_LIT("closed"));
    silt_json_bool(&b, w->close);
    silt_json_close(&b, '}');
    silt_api_answer(let_go(w), 200, &b);
}

static void go_on(struct writer *w)
{
    struct silt_process *p = w->process;
    if (p->stdin_owed) {
        if (w->silence.place == 0) /* the acknowledgement belongs to a client that has left */
            silt_loop_after(w->loop, &w->silence, SILENCE_MS);
        return;
    }
    if (p->exec == NULL || p->row.status != SILT_PROCESS_RUNNING) {
        refuse(w, SILT_API_STDIN_CLOSED, "The process does not run");
        return;
    }
    if (w->closed || (w->whole && w->pending.len == 0 && !w->close)) {
        answer(w);
        return;
    }
    if (w->pending.len == 0 && !w->whole) {
        silt_http_pause(w->request, false);
        return;
    }
    w->sent = w->pending.len < SILT_FRAME_BODY_MAX ? w->pending.len : SILT_FRAME_BODY_MAX;
    w->closed = w->whole && w->close && w->sent == w->pending.len;
    silt_loop_after(w->loop, &w->silence, SILENCE_MS);
    silt_process_write(p, (silt_slice){w->pending.data, w->sent}, w->closed);
}

static void on_taken(struct silt_stdin *in, bool gone)
{
    struct writer *w = silt_outer(in, struct writer, in);
    if (gone) {
        refuse(w, SILT_API_STDIN_CLOSED,
               "Nobody reads the standard input of this process, or it is closed");
        return;
    }
    w->total += w->sent;
    silt_buf_drop(&w->pending, w->sent);
    w->sent = 0;
    silt_loop_cancel(w->loop, &w->silence);
    go_on(w);
}

static void on_piece(struct silt_http_request *r, silt_slice piece, bool end)
{
    struct writer *w = r->owner;
    silt_buf_add(&w->pending, piece);
    assert(!w->pending
                .broken); /* a piece is the result of one read, and the next waits for this one */
    w->whole = end;
    if (!end)
        silt_http_pause(r, true);
    go_on(w);
}

static void on_event(struct silt_process_watch *watch, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e)
{
    struct writer *w = silt_outer(watch, struct writer, watch);
    (void)p;
    (void)what;
    (void)e;
    refuse(w, SILT_API_STDIN_CLOSED, "The process has ended");
}

static void on_silence(struct silt_timer *t)
{
    refuse(silt_outer(t, struct writer, silence), SILT_API_PROCESS_FAILED,
           "The process has not read its standard input for five minutes");
}

static void put(struct silt_call *c)
{
    struct silt_process *p = c->process;
    if (p->row.status != SILT_PROCESS_RUNNING) {
        silt_process_refuse_finished(c, p);
        return;
    }
    if (p->in != NULL) {
        silt_api_refuse(c->request, SILT_API_PROCESS_BUSY, (silt_slice){NULL, 0},
                        "Another request writes the standard input of process '%s'", p->row.id);
        return;
    }
    struct writer *w = calloc(1, sizeof(*w));
    if (w == NULL)
        abort();
    *w = (struct writer){
        .in = {.on_taken = on_taken},
        .watch = {.on_event = on_event},
        .request = c->request,
        .loop = c->api->loop,
        .process = p,
        .silence = {.on_time = on_silence},
        .close = silt_slice_eq(silt_query(c->request, SILT_LIT("close")), SILT_LIT("true"))};
    silt_buf_init(&w->pending, PENDING_MAX);
    silt_process_watch(p, &w->watch);
    p->in = &w->in;
    c->request->owner = w;
    c->request->on_gone = on_gone;
    silt_http_pause(c->request, false);
}

static bool hold_body(struct silt_call *c)
{
    silt_http_consume(c->request, UINT64_MAX, on_piece);
    silt_http_pause(c->request, true); /* until the process is found */
    return true;
}

static const struct silt_call_kind stdin_call = {.sandbox = SILT_CALL_LOOKS,
                                                 .native = true,
                                                 .parse = hold_body,
                                                 .choose = silt_process_choose,
                                                 .run = put};

SILT_HANDLER(silt_api_v1_process_stdin)
{
    silt_process_call(r, args, &stdin_call);
}
