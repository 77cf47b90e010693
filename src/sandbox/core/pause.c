/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/core/sandbox.h"

#include <assert.h>
#include <stdio.h>

enum { RETRY_S = 60 }; /* after a freeze that failed */

static void ask_freeze(struct silt_sandbox *s);
static void ask_thaw(struct silt_sandbox *s);

/* ---- pausing ---- */

static void could_not_pause(struct silt_sandbox *s, const struct silt_error *e)
{
    silt_log(SILT_LOG_WARN, "sandbox.pause", "sandbox=%s error=\"%s\"", s->row.id, e->text);
    (void)snprintf(s->remark, sizeof(s->remark), "could not be paused: %.120s", e->text);
    s->row.paused_ms = 0;
    silt_sandbox_enter(s, SILT_SANDBOX_IS_RUNNING);
    silt_sandbox_save(s);
    silt_sandbox_tell_resters(s, e);
    silt_sandbox_serve(s);
}

static void on_frozen(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_sandbox *s = context;
    (void)fds;
    (void)nfds;
    if (silt_sandbox_answered(s))
        return;
    if (!a->ok && a->body.error.code == SILT_INTERRUPTED) {
        ask_freeze(s);
        return;
    }
    if (!a->ok) {
        could_not_pause(s, &a->body.error);
        return;
    }
    silt_sandbox_enter(s, SILT_SANDBOX_IS_PAUSED);
    s->remark[0] = 0;
    silt_log(SILT_LOG_INFO, "sandbox.pause", "sandbox=%s", s->row.id);
    if (!s->paused_before)
        silt_journal_add(s->registry, s->row.id, SILT_EVENT_PAUSED, (silt_slice){NULL, 0});
    s->paused_before = false;
    silt_sandbox_rest_later(s);
    silt_sandbox_tell_resters(s, NULL);
    if (s->wake_wanted || !silt_list_empty(&s->waiters))
        silt_sandbox_wake(s);
}

static void ask_freeze(struct silt_sandbox *s)
{
    struct silt_priv_request q = {.op = SILT_PRIV_FREEZE, .slot = s->row.slot};
    silt_sandbox_ask(s, &q, NULL, 0, on_frozen);
}

static void begin_pause(struct silt_sandbox *s)
{
    silt_loop_cancel(s->registry->loop, &s->idle);
    s->wake_wanted = false;
    silt_sandbox_enter(s, SILT_SANDBOX_IS_PAUSING);
    silt_sandbox_pause_continue(s);
}

void silt_sandbox_pause(struct silt_sandbox *s, struct silt_waiter *w)
{
    struct silt_error e;
    assert(silt_sandbox_is_up(s));
    if (w != NULL)
        silt_list_init(&w->link);
    if (s->phase == SILT_SANDBOX_IS_PAUSED || s->phase == SILT_SANDBOX_IS_RESUMING) {
        if (w != NULL)
            w->on_ready(w, s, NULL);
        return;
    }
    if (s->state == SILT_SANDBOX_RUNNING) {
        /* Saved first: if siltd dies after the freeze, the next one knows that it must thaw. */
        s->row.paused_ms = silt_clock_wall_ms();
        s->paused_before = false;
        if (silt_sandbox_store(s, &e) < 0) {
            s->row.paused_ms = 0;
            silt_sandbox_rest_later(s);
            if (w != NULL)
                w->on_ready(w, NULL, &e);
            return;
        }
        begin_pause(s);
    }
    if (w != NULL)
        silt_list_append(&s->resters, &w->link);
}

/* The kernel may have frozen it or not: silt-priv makes sure that it has. */
void silt_sandbox_pause_again(struct silt_sandbox *s)
{
    bool used = s->requests > 0 || s->state != SILT_SANDBOX_RUNNING;
    s->paused_before = true;
    begin_pause(s);
    s->wake_wanted = used;
}

void silt_sandbox_pause_continue(struct silt_sandbox *s)
{
    if (s->asks > 0)
        return; /* its answer continues here */
    if (s->phase == SILT_SANDBOX_IS_PAUSING)
        ask_freeze(s);
    else if (s->phase == SILT_SANDBOX_IS_RESUMING)
        ask_thaw(s);
}

/* ---- resuming ---- */

static void on_thawed(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_sandbox *s = context;
    (void)fds;
    (void)nfds;
    if (silt_sandbox_answered(s))
        return;
    if (!a->ok && a->body.error.code == SILT_INTERRUPTED) {
        ask_thaw(s);
        return;
    }
    if (!a->ok) {
        silt_sandbox_on_lost(s, a->body.error.text);
        return;
    }
    s->row.paused_ms = 0;
    s->resumed_ms = silt_clock_wall_ms();
    silt_sandbox_enter(s, SILT_SANDBOX_IS_RUNNING);
    silt_sandbox_save(s);
    silt_log(SILT_LOG_INFO, "sandbox.resume", "sandbox=%s", s->row.id);
    silt_journal_add(s->registry, s->row.id, SILT_EVENT_RESUMED, (silt_slice){NULL, 0});
    if (!s->network.coming)
        silt_sandbox_serve(s);
}

static void ask_thaw(struct silt_sandbox *s)
{
    struct silt_priv_request q = {.op = SILT_PRIV_THAW, .slot = s->row.slot};
    silt_sandbox_ask(s, &q, NULL, 0, on_thawed);
}

void silt_sandbox_wake(struct silt_sandbox *s)
{
    s->wake_wanted = s->state == SILT_SANDBOX_PAUSED;
    if (s->phase != SILT_SANDBOX_IS_PAUSED)
        return;
    silt_loop_cancel(s->registry->loop, &s->idle);
    silt_sandbox_time(s, SILT_TIMING_WAKE_PAUSED);
    silt_sandbox_enter(s, SILT_SANDBOX_IS_RESUMING);
    silt_sandbox_pause_continue(s);
}

/* ---- idle time ---- */

static bool is_idle(const struct silt_sandbox *s)
{
    return s->requests == 0 && (s->awake == 0 || s->row.let_sleep);
}

static bool can_sleep(const struct silt_sandbox *s)
{
    return s->row.id[0] != 0 && s->row.sleep_after_s > 0 && !s->row.keep_alive;
}

void silt_sandbox_rest_later(struct silt_sandbox *s)
{
    struct silt_loop *loop = s->registry->loop;
    silt_loop_cancel(loop, &s->idle);
    if (s->state == SILT_SANDBOX_RUNNING && is_idle(s) && can_sleep(s)) {
        int64_t wait_s = s->row.sleep_after_s;
        if (s->remark[0] != 0 && wait_s < RETRY_S)
            wait_s = RETRY_S;
        silt_loop_after(loop, &s->idle, wait_s * 1000);
    } else if (s->phase == SILT_SANDBOX_IS_PAUSED && s->row.stop_after_s > 0) {
        int64_t left_ms = s->row.paused_ms + s->row.stop_after_s * 1000 - silt_clock_wall_ms();
        silt_loop_after(loop, &s->idle, left_ms > 0 ? left_ms : 0);
    }
}

void silt_sandbox_on_idle(struct silt_timer *t)
{
    struct silt_sandbox *s = silt_outer(t, struct silt_sandbox, idle);
    if (s->phase == SILT_SANDBOX_IS_PAUSED)
        silt_sandbox_stop(s, "idle",
                          "the sandbox was not used for long and was stopped; its files are kept "
                          "and the next use starts it");
    else if (s->state == SILT_SANDBOX_RUNNING && is_idle(s) && !s->network.coming)
        silt_sandbox_pause(s, NULL);
}

void silt_sandbox_keep_awake(struct silt_sandbox *s)
{
    s->awake++;
    silt_sandbox_rest_later(s);
}

void silt_sandbox_let_sleep(struct silt_sandbox *s)
{
    assert(s->awake > 0);
    s->awake--;
    silt_sandbox_rest_later(s);
}
