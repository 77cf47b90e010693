/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "sandbox/core/sandbox.h"

enum { KEPT_ARENA_MAX = 64 << 20 };

static void is_gone(struct silt_container *c)
{
    struct silt_containers *all = c->all;
    struct silt_error e;
    if (silt_store_remove_container(all->registry->store, c->row.id, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.remove", "container=%s error=%s", c->row.id, e.text);
    (void)silt_map_remove(&all->by_name, silt_slice_of(c->row.name));
    (void)silt_map_remove(&all->by_id, silt_slice_of(c->row.id));
    silt_list_remove(&c->link);
    all->count--;
    silt_loop_cancel(silt_container_loop(c), &c->delay);
    silt_loop_cancel(silt_container_loop(c), &c->stop);
    silt_loop_bury(silt_container_loop(c), &c->grave);
    struct silt_error gone;
    (void)silt_fail(&gone, SILT_GONE, "the container was removed");
    silt_container_tell_asks(&c->starters, &gone);
    silt_container_tell_waits(c, true);
    silt_container_tell_asks(&c->removers, NULL);
}

/* If it were gone, the next container of its name would get the files: it stays, to be removed
 * again. */
static void could_not_remove(struct silt_container *c, const struct silt_error *e)
{
    silt_log(SILT_LOG_ERROR, "container.remove", "container=%.12s sandbox=%s error=\"%s\"",
             c->row.id, c->sandbox, e->text);
    silt_container_enter(c, SILT_CONTAINER_IS_STUCK);
    silt_container_tell_asks(&c->removers, e);
}

static void on_destroyed(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_container *c = silt_outer(w, struct silt_container, waiter);
    (void)s;
    if (e != NULL)
        could_not_remove(c, e);
    else
        is_gone(c);
}

/* Files of a container that had ended are kept for the next of its name, if a workerd may create
 * that; those of a running one are removed. */
static bool keeps_files(const struct silt_container *c)
{
    return c->all->keep_s > 0 && silt_container_class(c).data != NULL
           && (c->row.started_ms > 0 || c->reused);
}

/* Saved before anything is removed, so that the next siltd finishes if this one dies. */
static void save_going(struct silt_container *c)
{
    if (c->row.status == SILT_CONTAINER_GOING)
        return;
    c->row.status = SILT_CONTAINER_GOING;
    silt_container_save(c);
}

void silt_container_remove_itself(struct silt_container *c)
{
    if (c->spec.auto_remove && c->readers == 0 && silt_container_has_exited(c))
        silt_container_remove_now(c, true);
}

void silt_container_read_begin(struct silt_container *c)
{
    c->readers++;
}

void silt_container_read_end(struct silt_container *c)
{
    c->readers--;
    silt_container_remove_itself(c);
}

void silt_container_remove_now(struct silt_container *c, bool whole)
{
    struct silt_sandbox *s = silt_container_sandbox(c);
    silt_container_forget_output(c);
    silt_container_enter(c, SILT_CONTAINER_IS_REMOVING);
    silt_waiter_leave(&c->waiter); /* files of an earlier container may be in removal */
    if (c->spec.kind == SILT_CONTAINER_SIDECAR) {
        silt_container_shut_door(c);
        silt_container_forget_capture(c);
    }
    if (s == NULL || (!whole && keeps_files(c))) {
        if (s != NULL)
            silt_sandbox_stop(s, "exit", "the container was removed");
        is_gone(c);
        return;
    }
    save_going(c);
    c->waiter.on_ready = on_destroyed;
    silt_sandbox_destroy(s, &c->waiter);
}

/* During its end. */
static void condemn(struct silt_container *c)
{
    silt_container_enter(c, SILT_CONTAINER_IS_ENDING_CONDEMNED);
    save_going(c);
}

static void end_and_remove(struct silt_container *c, bool spared)
{
    if (spared)
        silt_log(SILT_LOG_INFO, "container.spared", "container=%.12s sandbox=%s", c->row.id,
                 c->sandbox);
    if (c->state != SILT_CONTAINER_IS_ENDING)
        silt_container_end_as(c, SILT_CONTAINER_KILLED_CODE,
                              spared ? SILT_CONTAINER_IS_ENDING_SPARED
                                     : SILT_CONTAINER_IS_ENDING_CONDEMNED);
    else if (spared)
        silt_container_enter(c, SILT_CONTAINER_IS_ENDING_SPARED);
    else
        condemn(c);
}

void silt_container_condemn(struct silt_container *c)
{
    if (c->state == SILT_CONTAINER_IS_ENDING_SPARED)
        condemn(c);
}

/* A workerd whose wait broke (silt-super had no room for it) takes its container for ended without
 * checking. It then removes the supposed leftover: when its object goes, or when the next start
 * finds the name taken. One that knows better (its wait did not break, or it checked after its own
 * restart) waits for the end. */
void silt_container_remove(struct silt_container *c, bool unsure, struct silt_container_ask *a)
{
    if (a != NULL) {
        silt_list_init(&a->link);
        silt_list_append(&c->removers, &a->link);
    }
    if (silt_container_is_going(c))
        return;
    if (c->state == SILT_CONTAINER_IS_STARTING || silt_container_runs(c))
        end_and_remove(c, unsure && c->unwatched);
    else
        silt_container_remove_now(c, c->state == SILT_CONTAINER_IS_STUCK);
}

/* Files of an earlier container */

/* Started, it would have those files: it can only be removed, with them. */
static void could_not_clear(struct silt_container *c, const struct silt_error *e)
{
    save_going(c);
    could_not_remove(c, e);
}

static void on_cleared(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_container *c = silt_outer(w, struct silt_container, waiter);
    (void)s;
    if (e == NULL) {
        silt_container_enter(c, SILT_CONTAINER_IS_CREATED);
        silt_container_tell_asks(&c->starters, NULL);
    } else if (silt_list_empty(&c->starters)) { /* its creator has left, or was of another siltd */
        could_not_clear(c, e);
    } else {
        silt_container_tell_asks(&c->starters, e);
        is_gone(c);
    }
}

static int clear(struct silt_container *c, struct silt_sandbox *s, struct silt_error *e)
{
    if (silt_sandbox_condemn(s, e) < 0)
        return -1;
    silt_container_enter(c, SILT_CONTAINER_IS_CLEARING);
    c->waiter.on_ready = on_cleared;
    silt_sandbox_destroy(s, &c->waiter);
    return 0;
}

void silt_container_clear(struct silt_container *c, struct silt_sandbox *s)
{
    struct silt_error e;
    if (clear(c, s, &e) < 0)
        could_not_clear(c, &e);
}

/* The files of an earlier container of this name go to the new one if both use the same image. */
int silt_container_take_files(struct silt_container *c, struct silt_error *e)
{
    struct silt_sandbox *s = silt_container_sandbox(c);
    c->reused = s != NULL && c->all->keep_s > 0 && s->state != SILT_SANDBOX_DESTROYING
                && memcmp(s->row.digest, c->row.digest, SILT_DIGEST_SIZE) == 0
                && silt_container_fits_network(c, s);
    if (s == NULL || c->reused || clear(c, s, e) == 0)
        return 0;
    is_gone(c);
    return -1;
}

void silt_containers_expire_files(struct silt_containers *all)
{
    int64_t before_ms = silt_clock_wall_ms() - (int64_t)all->keep_s * 1000;
    uint32_t slot = 0;
    struct silt_kept k;
    silt_auto_arena a = {0};
    silt_arena_init(&a, KEPT_ARENA_MAX);
    while (silt_kept_next(all, &a, &slot, &k))
        if (k.sandbox->state == SILT_SANDBOX_STOPPED && k.sandbox->row.used_ms < before_ms)
            silt_sandbox_destroy(k.sandbox, NULL);
}
