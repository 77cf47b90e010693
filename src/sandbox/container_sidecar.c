/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container_own.h"
#include "base/fd.h"
#include "base/diag.h"
#include "sandbox/sandbox.h"

#include <sys/socket.h>

enum {
    UNHEARD_MAX = 2, /* looks in a row that found nobody: workerd is dead */
    LISTEN_MS = 10000, /* for silt-super, which does nothing else */
};

/* As silt_container_find has it, without a walk over all of them for each that names another. */
static bool is_behind(const struct silt_container *c, const struct silt_container *sidecar)
{
    silt_slice name = c->spec.sidecar;
    if (name.len > 0 && name.data[0] == '/')
        name = (silt_slice){name.data + 1, name.len - 1};
    if (name.len == 0)
        return false;
    const struct silt_container *named = silt_map_find(&c->all->by_name, name);
    if (named != NULL)
        return named == sidecar;
    return silt_slice_starts(silt_slice_of(sidecar->row.id), name) && silt_container_find(c->all, name) == sidecar;
}

struct silt_container *silt_container_behind(struct silt_container *sidecar)
{
    silt_list_each(it, &sidecar->all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        if (c->state == SILT_CONTAINER_IS_RUNNING && is_behind(c, sidecar))
            return c;
    }
    return NULL;
}

void silt_containers_tell_unlisten(struct silt_containers *all, uint64_t number)
{
    struct silt_super_note note = {.type = SILT_SUPER_UNLISTEN, .number = number};
    silt_registry_tell_super(all->registry, &note);
}

/* What silt-super makes all the same is refused when it comes. */
void silt_container_was_not_answered(struct silt_container *c)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_UNAVAILABLE, "no listening socket was made within %d ms", LISTEN_MS);
    silt_containers_tell_unlisten(c->all, c->row.number);
    silt_container_could_not_start(c, &e);
}

void silt_container_start_sidecar(struct silt_container *c)
{
    c->question += c->question == UINT32_MAX ? 2 : 1; /* 0 is nobody's */
    struct silt_super_note note = {.type = SILT_SUPER_LISTEN, .key = c->question, .number = c->row.number};
    silt_registry_tell_super(c->all->registry, &note);
    silt_loop_after(silt_container_loop(c), &c->stop, LISTEN_MS);
}

/* Of a question that was given up: silt-super was told so before the next one, and has closed its own. */
static bool is_late(const struct silt_container *c, uint32_t question)
{
    return c->listen >= 0 || (question != 0 && question != c->question);
}

void silt_containers_on_listener(struct silt_containers *all, uint64_t number, uint32_t question, int fd)
{
    silt_auto_fd own = fd;
    if (silt_containers_is_of_wait(all, number, &own))
        return;
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        struct silt_error e;
        if (c->row.number != number || c->spec.kind != SILT_CONTAINER_SIDECAR)
            continue;
        if (is_late(c, question))
            return;
        if (c->state != SILT_CONTAINER_IS_STARTING && c->state != SILT_CONTAINER_IS_RUNNING)
            break;
        if (own < 0) {
            silt_containers_tell_unlisten(all, number);
            (void)silt_fail(&e, SILT_UNAVAILABLE, "no listening socket could be made");
            silt_container_could_not_start(c, &e);
            return;
        }
        struct sockaddr_in at = {0};
        socklen_t len = sizeof(at);
        (void)getsockname(own, (struct sockaddr *)&at, &len);
        c->port = ntohs(at.sin_port);
        silt_loop_cancel(silt_container_loop(c), &c->stop);
        all->hooks.listen(all->hooks.context, c, silt_take_fd(&own));
        if (c->state == SILT_CONTAINER_IS_STARTING)
            silt_container_be_running(c);
        return;
    }
    silt_containers_tell_unlisten(all, number);
}

/* One that never ran may have one all the same: of a siltd that died while it was started. */
void silt_container_shut_door(struct silt_container *c)
{
    if (c->listen < 0 || c->all->hooks.unlisten == NULL)
        return;
    c->all->hooks.cut(c->all->hooks.context, c);
    c->all->hooks.unlisten(c->all->hooks.context, c);
}

static bool is_needed(struct silt_container *sidecar)
{
    silt_list_each(it, &sidecar->all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        if (c->state < SILT_CONTAINER_IS_EXITED && is_behind(c, sidecar))
            return true;
    }
    return false;
}

/* A workerd that is dead has left it: nobody listens where its traffic would go. A living one comes back to it. */
void silt_container_look_at_sidecar(struct silt_container *c)
{
    uint16_t port = silt_container_egress_port(c);
    if (c->state != SILT_CONTAINER_IS_RUNNING || c->all->diag < 0 || port == 0 || is_needed(c)
        || silt_diag_listens(c->all->diag, port)) {
        c->unheard = 0;
        return;
    }
    if (++c->unheard >= UNHEARD_MAX)
        silt_container_remove(c, false, NULL);
}
