/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container/internal.h"
#include "sandbox/container/volume.h"
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/facet.h"
#include "sandbox/network/intercept.h"

enum { UPKEEP_MS = 5000 };

static enum silt_container_state state_of(const struct silt_container_row *row)
{
    switch (row->status) {
    case SILT_CONTAINER_CREATED:
        return SILT_CONTAINER_IS_CREATED;
    case SILT_CONTAINER_RUNNING:
        return SILT_CONTAINER_IS_RUNNING;
    case SILT_CONTAINER_GOING:
        return SILT_CONTAINER_IS_STUCK;
    case SILT_CONTAINER_EXITED:
    case SILT_CONTAINER_STATUS_MAX:
        break;
    }
    return SILT_CONTAINER_IS_EXITED;
}

static void load_row(void *context, struct silt_container_row *row)
{
    struct silt_containers *all = context;
    struct silt_container *c = silt_container_new(all);
    struct silt_container_image image = {0};
    struct silt_error e;
    c->row = *row;
    if (c->row.name == NULL || c->row.body == NULL
        || silt_map_find(&all->by_name, silt_slice_of(c->row.name)) != NULL
        || silt_container_spec_read(&c->arena, silt_slice_of(c->row.body), &c->spec, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "store.skip", "container=%s", c->row.id);
        silt_container_free(&c->grave);
        return;
    }
    if (c->spec.kind == SILT_CONTAINER_APP)
        (void)silt_container_image(all->registry, c->spec.image, &image, &e);
    c->builtin = image.builtin;
    silt_container_name_trust(c);
    silt_container_add(c);
    c->reused = true;
    silt_container_enter(c, state_of(row));
    c->unwatched = c->state == SILT_CONTAINER_IS_RUNNING;
    c->running_ms = silt_clock_ms(); /* its program may have started just before the restart */
    struct silt_sandbox *s = silt_container_sandbox(c);
    if (c->state != SILT_CONTAINER_IS_RUNNING || s == NULL)
        return;
    c->process = silt_container_program(s);
    if (c->process != NULL)
        silt_container_watch(c);
}

static int load(struct silt_registry *r, struct silt_error *e)
{
    if (r->containers == NULL)
        return 0;
    r->captures->owner = silt_containers_owner;
    return silt_volumes_load(r->containers, e) < 0
               ? -1
               : silt_store_each_container(r->store, load_row, r->containers, e);
}

/* True if a running container's sandbox or socket is gone. The record of an ended program is
 * evaluated later. */
static bool is_lost(struct silt_container *c)
{
    struct silt_sandbox *s = silt_container_sandbox(c);
    if (c->spec.kind == SILT_CONTAINER_SIDECAR)
        return c->listen < 0;
    if (c->process != NULL)
        return false;
    return !c->builtin || s == NULL || !s->row.running;
}

static void settle(struct silt_registry *r)
{
    struct silt_containers *all = r->containers;
    if (all == NULL)
        return;
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_outer(it, struct silt_container, link);
        struct silt_sandbox *s = silt_container_sandbox(c);
        if (silt_container_is_up(c) && is_lost(c) && c->row.port != 0)
            c->shut = true; /* workerd may have survived and expects the same port */
        else if (silt_container_is_up(c) && is_lost(c))
            silt_container_end(c, SILT_CONTAINER_KILLED_CODE);
        else if (c->state == SILT_CONTAINER_IS_STUCK)
            silt_container_remove_now(c, true); /* siltd died during the removal */
        else if (c->spec.auto_remove && c->state == SILT_CONTAINER_IS_EXITED)
            silt_container_remove_itself(c);
        else if (c->state == SILT_CONTAINER_IS_CREATED && s != NULL
                 && (s->state == SILT_SANDBOX_DESTROYING
                     || silt_container_is_of_another_image(c, s)))
            silt_container_clear(c, s); /* siltd died while clearing */
    }
    silt_containers_reopen_next(all);
    silt_loop_after(all->registry->loop, &all->upkeep, UPKEEP_MS);
}

void silt_containers_on_upkeep(struct silt_timer *t)
{
    struct silt_containers *all = silt_outer(t, struct silt_containers, upkeep);
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (c->spec.kind == SILT_CONTAINER_SIDECAR)
            silt_container_look_at_sidecar(c);
    }
    silt_containers_reopen_next(all);
    silt_containers_expire_files(all);
    silt_loop_after(all->registry->loop, t, UPKEEP_MS);
}

static void on_sandbox_ended(struct silt_sandbox *s, const struct silt_error *why)
{
    (void)why;
    struct silt_registry *r = s->registry;
    if (r->containers == NULL || s->row.id[0] != 'w')
        return;
    silt_list_each(it, &r->containers->list)
    {
        struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (c->spec.kind == SILT_CONTAINER_APP && silt_container_is_up(c)
            && strcmp(c->sandbox, s->row.id) == 0)
            silt_container_end(c, SILT_CONTAINER_KILLED_CODE);
    }
}

static void close_all(struct silt_registry *r)
{
    silt_containers_free(r->containers);
    r->containers = NULL;
}

const struct silt_facet silt_container_facet = {
    .load = load, .recovered = settle, .close = close_all, .on_ended = on_sandbox_ended};
