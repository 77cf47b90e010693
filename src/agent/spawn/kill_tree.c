/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/kill_tree.h"
#include "agent/spawn/proc.h"
#include "agent/spawn/test_holes.h"
#include "base/clock.h"
#include "base/own.h"

#include <signal.h>
#include <stdlib.h>

/* Most processes die of the first signal; those alive after this long are frozen first. A process
 * that cannot be frozen (it waits for a dead disk) must not keep the others frozen. */
enum { FREEZE_FROM_MS = 3, FREEZE_UNTIL_MS = 2000 };
enum { GENTLE_LOOK_MS = 50 }; /* usually a child's death triggers the check */

static bool visit_add(void *arg, pid_t id)
{
    struct silt_id_set *s = arg;
    if (s->count % 64 == 0) {
        pid_t *more = realloc(s->ids, (s->count + 64) * sizeof(pid_t));
        if (more == NULL)
            return false;
        s->ids = more;
    }
    s->ids[s->count++] = id;
    return s->count < SILT_ID_SET_MAX;
}

void silt_id_set_take(struct silt_id_set *s, const struct silt_handle *h)
{
    s->count = 0;
    (void)silt_handle_visit(h, visit_add, s);
}

void silt_id_set_remove(struct silt_id_set *s, pid_t id)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->ids[i] != id)
            s->ids[kept++] = s->ids[i];
    s->count = kept;
}

void silt_id_set_free(struct silt_id_set *s)
{
    free(s->ids);
    *s = (struct silt_id_set){0};
}

static bool has(const struct silt_id_set *s, pid_t id)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->ids[i] == id)
            return true;
    return false;
}

/* True for a process that existed before, its threads, and children it has started since. */
static bool is_old(const struct silt_id_set *keep, pid_t id)
{
    enum { GENERATIONS_MAX = 32 };
    if (keep == NULL || keep->count == 0)
        return false;
    if (has(keep, id))
        return true;
    if (!silt_proc_is_process(id))
        id = (pid_t)silt_proc_status(id, "Tgid:", 10);
    for (int i = 0; i < GENERATIONS_MAX && id > 1; i++) {
        if (has(keep, id))
            return true;
        id = (pid_t)silt_proc_status(id, "PPid:", 10);
    }
    return false;
}

struct round {
    struct silt_kill_tree *purge;
    int signal;
    size_t met;
};

static bool is_kept(const struct round *r, pid_t id)
{
    struct silt_kill_tree *p = r->purge;
    return (p->spares != NULL ? p->spares(p, id) : is_old(p->keep, id)) || silt_agent_spares(id);
}

static bool visit_purge(void *arg, pid_t id)
{
    struct round *r = arg;
    if (is_kept(r, id))
        return true;
    r->met++;
    (void)kill(id, SIGKILL); /* any thread will do */
    return true;
}

static bool visit_signal(void *arg, pid_t id)
{
    struct round *r = arg;
    if (silt_proc_is_process(id) && !is_kept(r, id))
        (void)kill(id, r->signal);
    return true;
}

static bool visit_count(void *arg, pid_t id)
{
    struct round *r = arg;
    r->met += !is_kept(r, id);
    return r->met == 0;
}

static void thaw(struct silt_kill_tree *p)
{
    if (!p->frozen)
        return;
    p->frozen = false;
    silt_handle_freeze(p->handle, false);
}

/* A process killed while all are frozen cannot have a child that we did not see. */
static bool stand_still(struct silt_kill_tree *p)
{
    int64_t age_ms = p->loop->now_ms - p->since_ms;
    if (age_ms < FREEZE_FROM_MS || age_ms >= FREEZE_UNTIL_MS)
        return true;
    if (!p->frozen) {
        p->frozen = true;
        silt_handle_freeze(p->handle, true);
    }
    return silt_handle_is_frozen(p->handle);
}

static void finish(struct silt_kill_tree *p)
{
    silt_kill_tree_stop(p);
    p->on_clean(p);
}

static void begin_killing(struct silt_kill_tree *p)
{
    p->forced = p->gentle;
    p->gentle = false;
    p->since_ms = silt_clock_ms();
    if (p->keep == NULL && p->spares == NULL)
        silt_handle_signal(p->handle, SIGKILL);
}

static void step_gently(struct silt_kill_tree *p)
{
    struct round r = {.purge = p};
    int64_t left_ms = p->since_ms - silt_clock_ms();
    if (silt_handle_visit(p->handle, visit_count, &r) == 0 && r.met == 0) {
        finish(p);
        return;
    }
    if (left_ms <= 0)
        begin_killing(p);
    silt_loop_after(p->loop, &p->timer, left_ms < GENTLE_LOOK_MS ? left_ms : GENTLE_LOOK_MS);
}

static void step(struct silt_kill_tree *p)
{
    struct round r = {.purge = p};
    bool still = stand_still(p);
    int listed = silt_handle_visit(p->handle, visit_purge, &r);
    if (still)
        thaw(p);
    /* With the kill_tree test switch a single pass is all, like a plain loop of kills. */
    if (listed == 0 && (r.met == 0 || silt_without("kill_tree"))) {
        finish(p);
        return;
    }
    int64_t age_ms = p->loop->now_ms - p->since_ms;
    silt_loop_after(p->loop, &p->timer, age_ms < 10 ? 1 : age_ms < 200 ? 5 : 50);
}

static void on_time(struct silt_timer *t)
{
    struct silt_kill_tree *p = silt_outer(t, struct silt_kill_tree, timer);
    if (p->gentle)
        step_gently(p);
    else
        step(p);
}

static void enlist(struct silt_kill_tree *p, struct silt_link *running)
{
    p->running = true;
    p->frozen = p->gentle = p->forced = false;
    p->timer.on_time = on_time;
    silt_list_init(&p->link);
    silt_list_append(running, &p->link);
}

void silt_kill_tree_start(struct silt_kill_tree *p, struct silt_link *running)
{
    if (p->running && !p->gentle)
        return;
    if (!p->running)
        enlist(p, running);
    begin_killing(p);
    silt_loop_after(p->loop, &p->timer, 0);
}

/* A stopped process (SIGSTOP) must be continued to receive it. */
static bool wakes(int signal)
{
    return signal != SIGCONT && signal != SIGSTOP && signal != SIGTSTP && signal != SIGTTIN
           && signal != SIGTTOU;
}

static void signal_all(struct silt_kill_tree *p, int signal)
{
    struct round r = {.purge = p, .signal = signal};
    (void)silt_handle_visit(p->handle, visit_signal, &r);
}

void silt_kill_tree_gently(struct silt_kill_tree *p, struct silt_link *running, int signal,
                           int64_t grace_ms)
{
    int64_t until_ms = silt_clock_ms() + grace_ms;
    if (p->running && !p->gentle)
        return;
    if (!p->running) {
        enlist(p, running);
        p->gentle = true;
        p->signal = signal;
        p->since_ms = until_ms;
    }
    if (until_ms < p->since_ms)
        p->since_ms = until_ms;
    signal_all(p, signal);
    if (wakes(signal))
        signal_all(p, SIGCONT);
    silt_loop_after(p->loop, &p->timer, 1);
}

void silt_kill_tree_stop(struct silt_kill_tree *p)
{
    if (!p->running)
        return;
    p->running = false;
    thaw(p);
    silt_list_remove(&p->link);
    silt_loop_cancel(p->loop, &p->timer);
}

void silt_kill_tree_poke(struct silt_link *running)
{
    silt_list_each(it, running)
    {
        struct silt_kill_tree *p = silt_outer(it, struct silt_kill_tree, link);
        silt_loop_after(p->loop, &p->timer, 0);
    }
}
