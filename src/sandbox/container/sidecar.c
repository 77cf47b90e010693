/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container/internal.h"
#include "base/fd.h"
#include "base/sock_diag.h"
#include "sandbox/core/sandbox.h"

#include <sys/socket.h>

enum {
    UNHEARD_MAX = 2,   /* checks in a row without a listener: workerd is dead */
    LISTEN_MS = 10000, /* for silt-super, which does nothing else */
    REFUSALS_MAX =
        3, /* if silt-super was killed, the old siltd frees the ports before the last try */
};

/* As silt_container_find, without a walk over all containers for each reference. */
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
    return silt_slice_starts(silt_slice_of(sidecar->row.id), name)
           && silt_container_find(c->all, name) == sidecar;
}

struct silt_container *silt_container_behind(struct silt_container *sidecar)
{
    silt_list_each(it, &sidecar->all->list)
    {
        struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (silt_container_is_up(c) && is_behind(c, sidecar))
            return c;
    }
    return NULL;
}

void silt_containers_tell_unlisten(struct silt_containers *all, uint64_t number)
{
    struct silt_super_note note = {.type = SILT_SUPER_UNLISTEN, .number = number};
    (void)silt_registry_tell_super(all->registry, &note, NULL, 0);
}

/* A socket that silt-super creates all the same is refused when it arrives. */
void silt_container_was_not_answered(struct silt_container *c)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_UNAVAILABLE, "no listening socket was made within %d ms", LISTEN_MS);
    silt_containers_tell_unlisten(c->all, c->row.number);
    silt_container_could_not_start(c, &e);
}

static void ask(struct silt_container *c, uint16_t port)
{
    c->question += c->question == UINT32_MAX ? 2 : 1; /* 0 means kept */
    struct silt_super_note note = {
        .type = SILT_SUPER_LISTEN, .key = c->question, .number = c->row.number, .port = port};
    (void)silt_registry_tell_super(c->all->registry, &note, NULL, 0);
    silt_loop_after(silt_container_loop(c), &c->stop, LISTEN_MS);
}

void silt_container_start_sidecar(struct silt_container *c)
{
    ask(c, 0);
}

/* One at a time: the channel to silt-super holds few requests. */
void silt_containers_reopen_next(struct silt_containers *all)
{
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (!c->shut)
            continue;
        c->shut = false;
        if (!silt_container_is_up(c))
            continue;
        ask(c, c->row.port);
        return;
    }
}

/* For a request that was given up: silt-super was told before the next one and has closed its
 * socket. */
static bool is_late(const struct silt_container *c, uint32_t question)
{
    return c->listen >= 0 || (question != 0 && question != c->question);
}

static void has_no_socket(struct silt_container *c)
{
    struct silt_error e;
    silt_containers_tell_unlisten(c->all, c->row.number);
    if (silt_container_is_up(c)) { /* it had one before all of Silt stopped */
        silt_loop_cancel(silt_container_loop(c), &c->stop);
        if (++c->refusals >= REFUSALS_MAX)
            silt_container_end(c, SILT_CONTAINER_KILLED_CODE);
        return;
    }
    (void)silt_fail(&e, SILT_UNAVAILABLE, "no listening socket could be made");
    silt_container_could_not_start(c, &e);
}

static void has_socket(struct silt_container *c, int fd)
{
    struct sockaddr_in at = {0};
    socklen_t len = sizeof(at);
    (void)getsockname(fd, (struct sockaddr *)&at, &len);
    c->row.port = ntohs(at.sin_port);
    c->refusals = 0;
    silt_loop_cancel(silt_container_loop(c), &c->stop);
    c->all->hooks.listen(c->all->hooks.context, c, fd);
    if (c->state == SILT_CONTAINER_IS_STARTING)
        silt_container_be_running(c);
}

void silt_containers_on_listener(struct silt_containers *all, uint64_t number, uint32_t question,
                                 int fd)
{
    silt_auto_fd own = fd;
    if (question != 0)
        silt_containers_reopen_next(all);
    if (silt_containers_is_of_wait(all, number, &own))
        return;
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (c->row.number != number || c->spec.kind != SILT_CONTAINER_SIDECAR)
            continue;
        if (is_late(c, question))
            return;
        if (c->state != SILT_CONTAINER_IS_STARTING && !silt_container_is_up(c))
            break;
        if (own < 0)
            has_no_socket(c);
        else
            has_socket(c, silt_take_fd(&own));
        return;
    }
    silt_containers_tell_unlisten(all, number);
}

/* One that never ran may still have a socket, from a siltd that died during its start. */
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
        struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (c->state < SILT_CONTAINER_IS_EXITED && is_behind(c, sidecar))
            return true;
    }
    return false;
}

/* A dead workerd has left its sidecar: nothing listens where the traffic would go. A live one comes
 * back to it. */
void silt_container_look_at_sidecar(struct silt_container *c)
{
    uint16_t port = silt_container_egress_port(c);
    c->shut |= c->refusals > 0 && c->listen < 0;
    if (!silt_container_is_up(c) || c->all->diag < 0 || port == 0 || is_needed(c)
        || silt_sock_diag_listens(c->all->diag, port)) {
        c->unheard = 0;
        return;
    }
    if (++c->unheard >= UNHEARD_MAX)
        silt_container_remove(c, false, NULL);
}
