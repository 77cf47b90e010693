/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/sweep.h"
#include "agent/exec/census.h"
#include "base/clock.h"

#include <signal.h>
#include <stdlib.h>

enum {
    SWEEPS_MAX = 64,
    LATE_MS = 8000, /* after the grace period, for the kernel to end killed processes */
    LOOK_MS = 5,    /* between checks of sessions and commands, which end by themselves */
};

struct sweep {
    struct silt_link link;
    struct silt_agent *agent; /* borrowed */
    uint64_t id;              /* request to answer; 0: none */
    uint64_t session;         /* only what this session's commands left; 0: all */
    struct silt_agent_sweep how;
    uint32_t number; /* it ends only what started before it */
    uint32_t found;
    int64_t kill_ms, late_ms;
    struct silt_timer timer;
    struct silt_link parts;
    struct silt_grave grave;
};

/* A group that no other object will empty. */
struct part {
    struct silt_link link;
    struct sweep *sweep;
    struct silt_group group;
    struct silt_kill_tree purge;
    struct silt_grave grave;
};

static void free_part(struct silt_grave *g)
{
    free(silt_outer(g, struct part, grave));
}

static void end_part(struct part *p)
{
    struct silt_agent *a = p->sweep->agent;
    silt_kill_tree_stop(&p->purge);
    p->group.handle->swept = false;
    silt_list_remove(&p->link);
    silt_loop_bury(&a->loop, &p->grave);
}

static void free_sweep(struct silt_grave *g)
{
    free(silt_outer(g, struct sweep, grave));
}

static void finish(struct sweep *w, uint32_t left)
{
    struct silt_agent *a = w->agent;
    struct silt_agent_swept swept = {.found = w->found, .left = left};
    struct silt_say say = {
        .type = SILT_AGENT_SWEPT, .id = w->id, .head = {(const char *)&swept, sizeof(swept)}};
    silt_list_each(it, &w->parts) end_part(silt_outer(it, struct part, link));
    silt_list_remove(&w->link);
    silt_loop_cancel(&a->loop, &w->timer);
    silt_loop_bury(&a->loop, &w->grave);
    if (w->id != 0)
        silt_channel_say(&a->channel, &say);
    else
        silt_session_exec_left(a, w->session);
    silt_handles_poke(&a->handles); /* swept handles can be reused */
}

/* ---- ending ---- */

static void on_clean(struct silt_kill_tree *purge)
{
    struct part *p = silt_outer(purge, struct part, purge);
    struct sweep *w = p->sweep;
    end_part(p);
    silt_loop_after(&w->agent->loop, &w->timer, 0);
}

static bool is_protected(struct silt_kill_tree *purge, pid_t id)
{
    struct part *p = silt_outer(purge, struct part, purge);
    return silt_group_protects(p->sweep->agent, &p->group, id);
}

/* Sessions and running commands are ended by their owners. */
static bool concerns(const struct sweep *w, const struct silt_group *g)
{
    if (w->session != 0)
        return g->session == NULL && g->exec == NULL && g->handle->session == w->session
               && g->handle->state == SILT_HANDLE_LEFT;
    return g->session == NULL && (g->exec == NULL || silt_exec_is_lasting(g->exec));
}

static void purge(struct part *p, const struct sweep *w)
{
    struct silt_agent *a = w->agent;
    if (w->how.signal == SIGKILL || w->how.grace_ms == 0)
        silt_kill_tree_start(&p->purge, &a->purges);
    else
        silt_kill_tree_gently(&p->purge, &a->purges, (int)w->how.signal, w->how.grace_ms);
}

static struct part *find_part(struct silt_agent *a, const struct sweep *of,
                              const struct silt_handle *h)
{
    silt_list_each(it, &a->sweeps)
    {
        struct sweep *w = silt_outer(it, struct sweep, link);
        silt_list_each(at, &w->parts)
        {
            struct part *p = silt_outer(at, struct part, link);
            if (h != NULL ? p->group.handle == h : concerns(of, &p->group))
                return p;
        }
    }
    return NULL;
}

/* Of any sweep: an earlier one may have it. */
static bool parts_are_done(const struct sweep *w)
{
    return find_part(w->agent, w, NULL) == NULL;
}

static void add_part(void *arg, const struct silt_group *g)
{
    struct sweep *w = arg;
    struct silt_agent *a = w->agent;
    struct part *other = find_part(a, w, g->handle);
    if (!concerns(w, g) || silt_handle_is_empty(g->handle))
        return;
    if (other != NULL) {
        purge(other, w); /* the shorter grace period counts */
        return;
    }
    struct part *p = calloc(1, sizeof(*p));
    if (p == NULL)
        abort();
    *p = (struct part){.sweep = w, .group = *g, .grave.free = free_part};
    p->purge = (struct silt_kill_tree){.loop = &a->loop, .handle = g->handle, .on_clean = on_clean};
    if (g->exec != NULL || g->handle == a->work_handle)
        p->purge.spares = is_protected;
    if (g->exec != NULL && g->exec->start.head.terminal != 0)
        silt_run_interrupt(g->exec, SIGINT); /* its shell may be inside a loop of its own */
    g->handle->swept = true;
    silt_list_append(&w->parts, &p->link);
    purge(p, w);
}

/* siltd signals the execs it has records of before it sends a sweep: they get the signal once. */
static bool is_told(const struct sweep *w, const struct silt_exec *x)
{
    return x->purge.running && x->purge.gentle && x->purge.since_ms <= w->kill_ms;
}

static void kill_commands(const struct sweep *w)
{
    silt_list_each(it, &w->agent->execs)
    {
        struct silt_exec *x = silt_outer(it, struct silt_exec, link);
        bool sharp = w->how.signal == SIGKILL || w->how.grace_ms == 0;
        if (x->start.head.mode != SILT_EXEC_FOREGROUND && !silt_exec_is_lasting(x)
            && (sharp || !is_told(w, x)))
            silt_run_kill(x, sharp ? SIGKILL : (int)w->how.signal, w->how.grace_ms);
    }
}

static bool sessions_are_done(const struct sweep *w)
{
    bool done = true;
    silt_list_each(it, &w->agent->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        int64_t left_ms = w->kill_ms - silt_clock_ms();
        if (s->born >= w->number)
            continue;
        if (s->swept < w->number) {
            s->swept = w->number;
            silt_session_sweep(s, (int)w->how.signal, left_ms > 0 ? left_ms : 0);
        }
        done = done && silt_session_is_swept(s);
    }
    return done;
}

/* The output of a dead command may still be on its way to a slow reader. */
static bool commands_are_done(const struct sweep *w)
{
    silt_list_each(it, &w->agent->execs)
    {
        struct silt_exec *x = silt_outer(it, struct silt_exec, link);
        if (x->born < w->number && x->start.head.mode != SILT_EXEC_FOREGROUND
            && !silt_exec_is_lasting(x) && (x->state != SILT_EXEC_ENDING || x->purge.running))
            return false;
    }
    return true;
}

static void on_look(struct silt_timer *t)
{
    struct sweep *w = silt_outer(t, struct sweep, timer);
    bool all = w->session == 0;
    if ((!all || (sessions_are_done(w) && commands_are_done(w))) && parts_are_done(w))
        finish(w, 0);
    else if (silt_clock_ms() >= w->late_ms)
        finish(w, silt_census_take(w->agent, 0, 0));
    else
        silt_loop_after(&w->agent->loop, t, LOOK_MS);
}

/* ---- a single process ---- */

static void on_look_at_one(struct silt_timer *t)
{
    struct sweep *w = silt_outer(t, struct sweep, timer);
    struct silt_group g;
    int64_t now_ms = silt_clock_ms();
    bool there = silt_census_find(w->agent, w->how.pid, &g);
    if (!there || now_ms >= w->late_ms) {
        finish(w, there);
        return;
    }
    if (now_ms >= w->kill_ms)
        (void)kill(w->how.pid, SIGKILL);
    silt_loop_after(&w->agent->loop, t, LOOK_MS);
}

static void kill_one(struct sweep *w)
{
    int signal = (int)w->how.signal;
    if (w->found > 0)
        (void)kill(w->how.pid, signal);
    if (w->found > 0 && signal != SIGKILL && signal != SIGSTOP && w->how.grace_ms > 0)
        (void)kill(w->how.pid, SIGCONT);
    if (w->found == 0 || (signal != SIGKILL && w->how.grace_ms == 0)) {
        finish(w, 0);
        return;
    }
    w->timer.on_time = on_look_at_one;
    silt_loop_after(&w->agent->loop, &w->timer, 1);
}

/* ---- starting ---- */

static struct sweep *new_sweep(struct silt_agent *a, uint64_t id,
                               const struct silt_agent_sweep *how)
{
    struct sweep *w = calloc(1, sizeof(*w));
    if (w == NULL)
        abort();
    *w = (struct sweep){.agent = a, .id = id, .how = *how, .grave.free = free_sweep};
    w->kill_ms = silt_clock_ms() + how->grace_ms;
    w->late_ms = w->kill_ms + LATE_MS;
    w->timer.on_time = on_look;
    silt_list_init(&w->parts);
    silt_list_append(&a->sweeps, &w->link);
    return w;
}

void silt_sweep_start(struct silt_agent *a, uint64_t id, const struct silt_agent_sweep *how)
{
    struct silt_error e;
    size_t count = 0;
    silt_list_each(it, &a->sweeps) count++;
    if (count >= SWEEPS_MAX) {
        (void)silt_fail(&e, SILT_LIMIT, "%zu kills are at work in this sandbox already", count);
        silt_channel_say_failed(&a->channel, id, &e);
        return;
    }
    struct sweep *w = new_sweep(a, id, how);
    w->found = silt_census_take(a, id, how->pid);
    if (how->signal == 0) {
        finish(w, 0);
    } else if (how->pid != 0) {
        kill_one(w);
    } else {
        w->number = ++a->sweep;
        kill_commands(w);
        (void)sessions_are_done(w); /* before the next frame: its command must not be ended, too */
        silt_group_each(a, add_part, w);
        silt_loop_after(&a->loop, &w->timer, 0);
    }
}

void silt_sweep_session(struct silt_agent *a, uint64_t session)
{
    struct silt_agent_sweep how = {.signal = SIGKILL};
    struct sweep *w = new_sweep(a, 0, &how);
    w->session = session;
    silt_group_each(a, add_part, w);
    silt_loop_after(&a->loop, &w->timer, 0);
}

void silt_sweep_left(struct silt_agent *a, struct silt_handle *h)
{
    struct silt_group g = {.handle = h};
    silt_list_each(it, &a->sweeps)
    {
        struct sweep *w = silt_outer(it, struct sweep, link);
        if (w->number != 0)
            add_part(w, &g);
    }
}

bool silt_sweep_has(struct silt_agent *a, uint64_t session)
{
    silt_list_each(it, &a->sweeps)
    {
        if (silt_outer(it, struct sweep, link)->session == session)
            return true;
    }
    return false;
}

void silt_sweep_unprotect(struct silt_agent *a, const struct silt_handle *h, bool gone)
{
    silt_list_each(it, &a->sweeps)
    {
        struct sweep *w = silt_outer(it, struct sweep, link);
        silt_list_each(at, &w->parts)
        {
            struct part *p = silt_outer(at, struct part, link);
            if (p->group.handle != h)
                continue;
            p->group.exec = NULL;
            p->purge.spares = NULL;
            if (gone)
                end_part(p);
        }
    }
}
