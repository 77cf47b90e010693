/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container_own.h"
#include "sandbox/container_volume.h"
#include "base/log.h"
#include "sandbox/sandbox.h"

enum { UPKEEP_MS = 5000 };

static void load(void *context, struct silt_container_row *row)
{
    struct silt_containers *all = context;
    struct silt_container *c = silt_container_new(all);
    struct silt_container_image image = {0};
    struct silt_error e;
    c->row = *row;
    if (c->row.name == NULL || c->row.body == NULL || silt_map_find(&all->by_name, silt_slice_of(c->row.name)) != NULL
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
    silt_container_enter(c, row->status == SILT_CONTAINER_RUNNING   ? SILT_CONTAINER_IS_RUNNING
             : row->status == SILT_CONTAINER_CREATED ? SILT_CONTAINER_IS_CREATED
                                                     : SILT_CONTAINER_IS_EXITED);
    c->unwatched = c->state == SILT_CONTAINER_IS_RUNNING;
    c->condemned = row->status == SILT_CONTAINER_GOING;
    struct silt_sandbox *s = silt_container_sandbox(c);
    if (c->state != SILT_CONTAINER_IS_RUNNING || s == NULL)
        return;
    c->process = silt_container_program(s);
    if (c->process != NULL)
        silt_container_watch(c);
}

int silt_containers_load(struct silt_containers *all, struct silt_error *e)
{
    return silt_volumes_load(all, e) < 0 ? -1 : silt_store_each_container(all->registry->store, load, all, e);
}

/* Whether what a running one needs is still there. Of a program that has ended its record tells, later. */
static bool is_lost(struct silt_container *c)
{
    struct silt_sandbox *s = silt_container_sandbox(c);
    if (c->spec.kind == SILT_CONTAINER_SIDECAR)
        return c->listen < 0;
    if (c->process != NULL)
        return false;
    return !c->builtin || s == NULL || !s->row.running;
}

void silt_containers_settle(struct silt_containers *all)
{
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        struct silt_sandbox *s = silt_container_sandbox(c);
        if (c->state == SILT_CONTAINER_IS_RUNNING && is_lost(c) && c->row.port != 0)
            c->shut = true; /* workerd may have lived on, and takes it for where it was */
        else if (c->state == SILT_CONTAINER_IS_RUNNING && is_lost(c))
            silt_container_end(c, SILT_CONTAINER_KILLED_CODE);
        else if (c->condemned)
            silt_container_remove_now(c); /* siltd died while it did that */
        else if (c->spec.auto_remove && c->state == SILT_CONTAINER_IS_EXITED)
            silt_container_remove_itself(c);
        else if (c->state == SILT_CONTAINER_IS_CREATED && s != NULL && silt_container_is_of_another_image(c, s))
            silt_container_clear(c, s); /* siltd died while it did that */
    }
    silt_containers_reopen_next(all);
    silt_loop_after(all->registry->loop, &all->upkeep, UPKEEP_MS);
}

void silt_containers_on_upkeep(struct silt_timer *t)
{
    struct silt_containers *all = silt_container_of(t, struct silt_containers, upkeep);
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        if (c->spec.kind == SILT_CONTAINER_SIDECAR)
            silt_container_look_at_sidecar(c);
    }
    silt_containers_reopen_next(all);
    silt_containers_expire_files(all);
    silt_loop_after(all->registry->loop, t, UPKEEP_MS);
}
