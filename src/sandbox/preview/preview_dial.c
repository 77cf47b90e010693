/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/preview/preview_dial.h"
#include "base/clock.h"
#include "base/own.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/facet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PAUSE_FIRST_MS = 20,
    PAUSE_MAX_MS = 200,
    WAIT_MAX_MS = 3600 * 1000,
    SLOW_MS = 40000, /* longer than any client waits for a start or an answer of silt-priv */
};

enum state { WAKING, DIALLING, REFUSED, OVER };

struct visit {
    struct silt_link link;              /* in preview->visits */
    struct silt_link turn;              /* in entrance->refused */
    struct silt_preview *preview;       /* borrowed */
    struct silt_exposed_port *entrance; /* borrowed; NULL: finished */
    enum state state;
    bool asked; /* silt-priv has not answered */
    bool held;  /* the sandbox is held */
    uint32_t serial;
    int64_t until_ms;
    struct silt_waiter waiter;
    struct silt_timer slow;
    struct silt_grave grave;
};

static void dial(struct visit *v);

static void free_visit(struct silt_grave *g)
{
    free(silt_outer(g, struct visit, grave));
}

/* Stays allocated while silt-priv has a request. */
static void bury(struct visit *v)
{
    silt_list_remove(&v->link);
    v->preview->visit_count--;
    silt_loop_bury(v->preview->registry->loop, &v->grave);
}

static void enter(struct visit *v, enum state next)
{
    v->state = next;
    silt_list_remove(&v->turn);
    if (next == REFUSED)
        silt_list_append(&v->entrance->refused, &v->turn);
    if (next != OVER)
        return;
    silt_waiter_leave(&v->waiter);
    silt_loop_cancel(v->preview->registry->loop, &v->slow);
    if (v->held)
        silt_sandbox_release(v->entrance->sandbox);
    v->held = false;
    v->entrance->sandbox->visits--;
    v->entrance = NULL;
    if (!v->asked)
        bury(v);
}

static void answer(struct visit *v, enum silt_preview_say type, const char *text)
{
    struct silt_preview_answer a = {
        .type = type, .serial = v->serial, .route = v->entrance->row.route};
    struct silt_preview *p = v->preview;
    if (text != NULL)
        (void)snprintf(a.body.text, sizeof(a.body.text), "%.*s", (int)sizeof(a.body.text) - 1,
                       text);
    enter(v, OVER);
    silt_preview_say(p, &a, NULL, 0);
}

/* Ports on which nothing listens */

static void on_retry(struct silt_timer *t);

static void wait_again(struct silt_exposed_port *x)
{
    struct silt_loop *loop = x->sandbox->registry->loop;
    if (x->retry.place != 0)
        return;
    x->retry.on_time = on_retry;
    x->pause_ms = x->pause_ms == 0 ? PAUSE_FIRST_MS : x->pause_ms * 2;
    x->pause_ms = x->pause_ms < PAUSE_MAX_MS ? x->pause_ms : PAUSE_MAX_MS;
    silt_loop_after(loop, &x->retry, x->pause_ms);
}

static void on_retry(struct silt_timer *t)
{
    struct silt_exposed_port *x = silt_outer(t, struct silt_exposed_port, retry);
    int64_t now_ms = silt_clock_ms();
    silt_list_each(it, &x->refused)
    {
        struct visit *v = silt_outer(it, struct visit, turn);
        if (v->until_ms <= now_ms)
            answer(v, SILT_PREVIEW_CLOSED, NULL);
    }
    if (silt_list_empty(&x->refused))
        x->pause_ms = 0;
    else
        dial(silt_list_first(&x->refused, struct visit, turn));
}

static void on_refused(struct visit *v)
{
    if (v->until_ms <= silt_clock_ms()) {
        answer(v, SILT_PREVIEW_CLOSED, NULL);
        return;
    }
    enter(v, REFUSED);
    wait_again(v->entrance);
}

/* A program listens: all others may dial. */
static void on_open(struct silt_exposed_port *x)
{
    silt_loop_cancel(x->sandbox->registry->loop, &x->retry);
    x->pause_ms = 0;
    while (!silt_list_empty(&x->refused))
        dial(silt_list_first(&x->refused, struct visit, turn));
}

/* silt-priv */

static void on_socket(struct visit *v, int fd)
{
    struct silt_exposed_port *x = v->entrance;
    struct silt_preview_answer a = {
        .type = SILT_PREVIEW_SOCKET, .serial = v->serial, .route = x->row.route};
    struct silt_preview *p = v->preview;
    enter(v, OVER);
    silt_preview_say(p, &a, &fd, 1);
    on_open(x);
}

static void on_failed(struct visit *v, const struct silt_error *e)
{
    struct silt_exposed_port *x = v->entrance;
    if (e->code == SILT_INTERRUPTED)
        dial(v);
    else if (e->code == SILT_UNAVAILABLE && e->sys == ECONNREFUSED)
        on_refused(v);
    else
        answer(v, e->sys == EADDRNOTAVAIL ? SILT_PREVIEW_BUSY : SILT_PREVIEW_ENDED, e->text);
    if (!silt_list_empty(&x->refused))
        wait_again(x); /* v may have been the one that retries for all */
}

static void on_dialled(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct visit *v = context;
    v->asked = false;
    if (v->state == OVER) {
        for (int i = 0; i < nfds; i++)
            silt_close_fd(&fds[i]);
        bury(v);
        return;
    }
    if (a->ok && nfds == 1) {
        on_socket(v, fds[0]);
        return;
    }
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&fds[i]);
    struct silt_error e = a->body.error;
    if (a->ok)
        (void)silt_fail(&e, SILT_PROTOCOL, "silt-priv sent no socket");
    on_failed(v, &e);
}

static void dial(struct visit *v)
{
    const struct silt_sandbox *s = v->entrance->sandbox;
    struct silt_priv_request q = {
        .op = SILT_PRIV_DIAL, .slot = s->row.slot, .body.port = v->entrance->row.port};
    enter(v, DIALLING);
    v->asked = true;
    silt_priv_ask(s->registry->priv, &q, NULL, 0, on_dialled, v);
}

/* The sandbox */

static void on_running(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct visit *v = silt_outer(w, struct visit, waiter);
    if (s == NULL) {
        answer(v, SILT_PREVIEW_ENDED, e->text);
        return;
    }
    silt_sandbox_hold(s);
    v->held = true;
    if (silt_list_empty(&v->entrance->refused))
        dial(v);
    else
        on_refused(v); /* another one retries for all */
}

static void on_slow(struct silt_timer *t)
{
    answer(silt_outer(t, struct visit, slow), SILT_PREVIEW_ENDED,
           "the sandbox does not answer in time");
}

static void refuse(struct silt_preview *p, uint32_t serial, enum silt_preview_say type)
{
    struct silt_preview_answer a = {.type = type, .serial = serial};
    silt_preview_say(p, &a, NULL, 0);
}

void silt_preview_dial_begin(struct silt_preview *p, struct silt_exposed_port *x, uint32_t serial,
                             uint32_t wait_ms)
{
    if (x == NULL || p->visit_count >= SILT_PREVIEW_OPEN_MAX
        || x->sandbox->visits >= SILT_PREVIEW_VISITS_MAX) {
        refuse(p, serial, x == NULL ? SILT_PREVIEW_UNKNOWN : SILT_PREVIEW_BUSY);
        return;
    }
    struct visit *v = calloc(1, sizeof(*v));
    if (v == NULL)
        abort();
    wait_ms = wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS;
    *v = (struct visit){.preview = p,
                        .entrance = x,
                        .serial = serial,
                        .until_ms = silt_clock_ms() + wait_ms,
                        .waiter = {.on_ready = on_running},
                        .slow = {.on_time = on_slow},
                        .grave = {.free = free_visit}};
    silt_list_init(&v->link);
    silt_list_init(&v->turn);
    silt_list_init(&v->waiter.link);
    silt_list_append(&p->visits, &v->link);
    p->visit_count++;
    x->sandbox->visits++;
    silt_loop_after(p->registry->loop, &v->slow, wait_ms + SLOW_MS);
    silt_sandbox_wait(x->sandbox, &v->waiter);
}

/* Ends */

static void leave_if(struct silt_preview *p, uint32_t serial, bool all)
{
    silt_list_each(it, &p->visits)
    {
        struct visit *v = silt_outer(it, struct visit, link);
        struct silt_exposed_port *x = v->entrance;
        if (v->state == OVER || (!all && v->serial != serial))
            continue;
        enter(v, OVER);
        if (!silt_list_empty(&x->refused))
            wait_again(x); /* it may have been the one that retries for all */
    }
}

void silt_preview_dial_leave(struct silt_preview *p, uint32_t serial)
{
    leave_if(p, serial, false);
}

void silt_preview_dial_leave_all(struct silt_preview *p)
{
    leave_if(p, 0, true);
}

void silt_preview_dial_close_all(struct silt_exposed_port *x)
{
    struct silt_preview *p = x->sandbox->registry->preview;
    silt_loop_cancel(x->sandbox->registry->loop, &x->retry);
    silt_list_each(it, &p->visits)
    {
        struct visit *v = silt_outer(it, struct visit, link);
        if (v->entrance == x)
            answer(v, SILT_PREVIEW_UNKNOWN, NULL);
    }
}

static void on_sandbox_ended(struct silt_sandbox *s, const struct silt_error *why)
{
    (void)why;
    struct silt_preview *p = s->registry->preview;
    silt_list_each(it, &p->visits)
    {
        struct visit *v = silt_outer(it, struct visit, link);
        if (v->state != OVER && v->state != WAKING && v->entrance->sandbox == s)
            answer(v, SILT_PREVIEW_ENDED, "the sandbox ended meanwhile");
    }
}

void silt_preview_dial_forget_all(struct silt_preview *p)
{
    silt_list_each(it, &p->visits)
    {
        silt_list_remove(it);
        free(silt_outer(it, struct visit, link));
    }
}

const struct silt_facet silt_preview_dial_facet = {.on_ended = on_sandbox_ended};
