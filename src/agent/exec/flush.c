/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/flush.h"
#include "agent/exec/exec.h"
#include "agent/spawn/proc.h"
#include "base/clock.h"

enum { PAUSE_MAX_MS = 16, QUIET_LOOKS = 4 };

struct look {
    unsigned looks;
    bool at_work;
    int64_t work_ms;
};

static bool visit(void *arg, pid_t id)
{
    enum { LOOKS_MAX = 64 };
    struct look *l = arg;
    int64_t ms = 0;
    char activity = silt_proc_work(id, &ms);
    l->at_work = l->at_work || activity == 'R' || activity == 'D';
    l->work_ms += ms;
    return ++l->looks < LOOKS_MAX;
}

static bool is_at_work(const struct silt_exec *x)
{
    struct look l = {0};
    (void)silt_handle_visit(x->handle, visit, &l);
    return l.at_work && l.work_ms < SILT_FLUSH_WORK_MS;
}

/* One pass is not atomic: a process seen waiting may have been woken by one that was checked later
 * and now waits itself. Between two steps of a script all wait for a moment, so it must be quiet
 * for some milliseconds. */
static bool has_begun(struct silt_exec *x)
{
    struct silt_flush *s = &x->flush;
    if (s->begun)
        return true;
    s->quiet = is_at_work(x) || is_at_work(x) ? 0 : s->quiet + 1;
    s->begun = silt_clock_ms() >= s->until_ms || s->quiet >= QUIET_LOOKS;
    return s->begun;
}

static void answer(struct silt_exec *x)
{
    struct silt_say pong = {.type = SILT_AGENT_PONG, .id = x->id};
    silt_flush_stop(x);
    silt_channel_say(&x->agent->channel, &pong);
}

/* Drain only after it has begun: what it wrote until then is in the pipe. */
static void look(struct silt_exec *x)
{
    struct silt_flush *s = &x->flush;
    if (s->state == SILT_FLUSH_BEGINNING && has_begun(x)) {
        s->state = SILT_FLUSH_DRAINING;
        silt_output_drain(&x->outlet);
    }
    if (s->state == SILT_FLUSH_DRAINING && !silt_output_owes(&x->outlet)) {
        answer(x);
        return;
    }
    if (s->quiet > 0)
        s->pause_ms = 1;
    silt_loop_after(&x->agent->loop, &s->timer, s->pause_ms);
    s->pause_ms = s->pause_ms * 2 < PAUSE_MAX_MS ? s->pause_ms * 2 : PAUSE_MAX_MS;
}

static void on_time(struct silt_timer *t)
{
    look(silt_outer(t, struct silt_exec, flush.timer));
}

void silt_flush_started(struct silt_exec *x)
{
    x->flush.until_ms = silt_clock_ms() + SILT_FLUSH_BEGIN_MS;
}

void silt_flush_ask(struct silt_exec *x)
{
    struct silt_flush *s = &x->flush;
    s->state = SILT_FLUSH_BEGINNING;
    s->quiet = 0;
    s->timer.on_time = on_time;
    s->pause_ms = 1;
    look(x);
}

void silt_flush_stop(struct silt_exec *x)
{
    x->flush.state = SILT_FLUSH_IDLE;
    silt_loop_cancel(&x->agent->loop, &x->flush.timer);
}

/* An exec that writes a lot at its start is not checked every time. */
void silt_flush_moved(struct silt_exec *x)
{
    if (x->flush.state == SILT_FLUSH_DRAINING)
        look(x);
}
