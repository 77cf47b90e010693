/* SPDX-License-Identifier: Apache-2.0 */
/* DELETE /v1/…/terminal: ends the terminal of a session; answers when its shell is gone. */
#include "api/core/api.h"
#include "sandbox/process/terminal.h"

#include <signal.h>
#include <stdlib.h>

enum { GRACE_MS = 2000, LATE_MS = 10000 };

struct ending {
    struct silt_process_watch watch;
    struct silt_timer deadline;
    struct silt_http_request *request;
    struct silt_loop *loop;       /* borrowed */
    struct silt_sandbox *sandbox; /* borrowed, held */
    char session[SILT_SESSION_NAME_MAX + 1];
};

static struct silt_http_request *let_go(struct ending *x)
{
    struct silt_http_request *r = x->request;
    r->on_gone = NULL;
    silt_process_unwatch(&x->watch);
    silt_loop_cancel(x->loop, &x->deadline);
    silt_sandbox_release(x->sandbox);
    free(x);
    return r;
}

static void on_gone(struct silt_http_request *r)
{
    (void)let_go(r->owner);
}

static void answer(struct silt_http_request *r, const char *session, bool ended)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "sessionId", session);
    silt_json_add_bool(&b, "ended", ended);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

static void on_event(struct silt_process_watch *w, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e)
{
    struct ending *x = silt_outer(w, struct ending, watch);
    char session[sizeof(x->session)];
    (void)e;
    if (what == SILT_PROCESS_STARTED) {
        silt_process_watch(p, w); /* the signal is sent once it has started */
        return;
    }
    memcpy(session, x->session, sizeof(session));
    answer(let_go(x), session, true);
}

static void on_late(struct silt_timer *t)
{
    silt_api_refuse(let_go(silt_outer(t, struct ending, deadline)), SILT_API_TIMEOUT,
                    (silt_slice){NULL, 0}, "The shell of the terminal has not ended within %d s",
                    LATE_MS / 1000);
}

static void run(struct silt_call *c)
{
    const char *session = c->own;
    struct silt_process *p = silt_terminal_find(c->sandbox, silt_slice_of(session));
    if (p == NULL) {
        answer(c->request, session, false);
        return;
    }
    struct ending *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    *x = (struct ending){.watch = {.on_event = on_event},
                         .deadline = {.on_time = on_late},
                         .request = c->request,
                         .loop = c->api->loop,
                         .sandbox = c->sandbox};
    memcpy(x->session, session, strlen(session));
    silt_sandbox_hold(x->sandbox);
    c->request->owner = x;
    c->request->on_gone = on_gone;
    silt_loop_after(x->loop, &x->deadline, LATE_MS);
    silt_process_watch(p, &x->watch);
    silt_process_kill(p, SIGHUP, GRACE_MS); /* may call us back: `x` may be gone afterwards */
}

static bool parse(struct silt_call *c)
{
    silt_slice raw = silt_query(c->request, SILT_LIT("sessionId")), name = {NULL, 0};
    char *session = silt_arena_alloc(c->request->arena, SILT_SESSION_NAME_MAX + 1);
    struct silt_error e;
    if (session == NULL)
        abort();
    if (raw.len == 0 || !silt_query_decode(c->request, raw, &name)
        || silt_slice_to_cstr(name, session, SILT_SESSION_NAME_MAX + 1, &e) < 0) {
        silt_api_refuse_field(c->request, "sessionId",
                              "is required, in the query, with at most 256 bytes");
        return false;
    }
    c->own = session;
    return true;
}

static const struct silt_call_kind end_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .parse = parse, .run = run};

SILT_HANDLER(silt_api_v1_terminal_end)
{
    silt_call_begin(r, args, &end_call);
}
