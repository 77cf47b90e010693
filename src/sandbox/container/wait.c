/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container/internal.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/core/sandbox.h"

/* silt-super stores the connections of waiting clients under numbers with this bit. */
static const uint64_t WAITS = 1ULL << 63;

static void drop_kept(struct silt_container_wait *w)
{
    struct silt_container *c = w->container;
    if (c->kept != w)
        return;
    c->kept = NULL;
    silt_containers_tell_unlisten(c->all, WAITS | c->row.number);
}

void silt_container_tell_waits(struct silt_container *c, bool removed)
{
    struct silt_link all;
    silt_list_init(&all);
    silt_list_each(it, &c->waits)
    {
        if (!removed && silt_outer(it, struct silt_container_wait, link)->removed)
            continue;
        silt_list_remove(it);
        silt_list_append(&all, it);
    }
    while (!silt_list_empty(&all)) {
        struct silt_container_wait *w = silt_list_first(&all, struct silt_container_wait, link);
        silt_list_remove(&w->link);
        drop_kept(w);
        w->on_done(w, c->row.exit_code);
    }
}

void silt_container_tell_asks(struct silt_link *asks, const struct silt_error *e)
{
    while (!silt_list_empty(asks)) {
        struct silt_container_ask *a = silt_list_first(asks, struct silt_container_ask, link);
        silt_list_remove(&a->link);
        a->on_done(a, e);
    }
}

void silt_container_ask_leave(struct silt_container_ask *a)
{
    silt_list_remove(&a->link);
}

void silt_container_wait_leave(struct silt_container_wait *w)
{
    silt_list_remove(&w->link);
    drop_kept(w);
}

void silt_container_wait_keep(struct silt_container_wait *w, int connection)
{
    struct silt_container *c = w->container;
    struct silt_super_note note = {.type = SILT_SUPER_LISTEN, .number = WAITS | c->row.number};
    if (c->spec.kind != SILT_CONTAINER_APP || w->removed)
        return;
    if (connection < 0 || silt_registry_tell_super(c->all->registry, &note, &connection, 1) == 0)
        c->kept = w;
}

bool silt_containers_is_of_wait(struct silt_containers *all, uint64_t number, int *fd)
{
    if ((number & WAITS) == 0)
        return false;
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (c->row.number == (number & ~WAITS) && c->spec.kind == SILT_CONTAINER_APP
            && all->hooks.waits != NULL && *fd >= 0) {
            all->hooks.waits(all->hooks.context, c, silt_take_fd(fd));
            if (c->kept != NULL)
                return true;
        }
    }
    silt_containers_tell_unlisten(all, number);
    return true;
}

bool silt_container_wait(struct silt_container *c, struct silt_container_wait *w, int32_t *ret_code)
{
    silt_list_init(&w->link);
    w->container = c;
    bool over = c->state <= SILT_CONTAINER_IS_CLEARING || silt_container_has_exited(c);
    if (!w->removed && !w->next && over) {
        *ret_code = c->row.exit_code;
        return true;
    }
    c->unwatched = c->unwatched && w->removed;
    if (!w->removed)
        c->waited_ms = silt_clock_ms();
    silt_list_append(&c->waits, &w->link);
    return false;
}
