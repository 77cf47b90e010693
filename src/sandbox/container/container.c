/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container/internal.h"
#include "sandbox/container/volume.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/preview/exposed_port.h"
#include "sandbox/core/sandbox.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARENA_MAX = 8 << 20 };

void silt_container_enter(struct silt_container *c,
                          enum silt_container_state next) /* the only place that assigns it */
{
    c->state = next;
}

const char *silt_container_status(const struct silt_container *c)
{
    switch (c->state) {
    case SILT_CONTAINER_IS_CREATED:
    case SILT_CONTAINER_IS_CLEARING:
    case SILT_CONTAINER_IS_STARTING:
        return "created";
    case SILT_CONTAINER_IS_RUNNING:
    case SILT_CONTAINER_IS_LEAVING:
    case SILT_CONTAINER_IS_FAILED:
    case SILT_CONTAINER_IS_ENDING:
    case SILT_CONTAINER_IS_ENDING_SPARED:
    case SILT_CONTAINER_IS_ENDING_CONDEMNED:
        return "running";
    case SILT_CONTAINER_IS_EXITED:
    case SILT_CONTAINER_IS_STUCK:
        return "exited";
    case SILT_CONTAINER_IS_REMOVING:
        return "removing";
    }
    return "dead";
}

void silt_container_save(struct silt_container *c)
{
    struct silt_error e;
    if (silt_store_put_container(c->all->registry->store, &c->row, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.put", "container=%s error=%s", c->row.id, e.text);
}

struct silt_loop *silt_container_loop(const struct silt_container *c)
{
    return c->all->registry->loop;
}

/* Lookups */

static struct silt_container *find_prefix(struct silt_containers *all, silt_slice prefix)
{
    struct silt_container *found = NULL;
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (!silt_slice_starts(silt_slice_of(c->row.id), prefix))
            continue;
        if (found != NULL)
            return NULL;
        found = c;
    }
    return found;
}

struct silt_container *silt_container_find(struct silt_containers *all, silt_slice name)
{
    if (name.len > 0 && name.data[0] == '/')
        name = (silt_slice){name.data + 1, name.len - 1};
    struct silt_container *c = silt_map_find(&all->by_name, name);
    if (c == NULL)
        c = silt_map_find(&all->by_id, name);
    return c != NULL || name.len == 0 ? c : find_prefix(all, name);
}

struct silt_sandbox *silt_container_sandbox(struct silt_container *c)
{
    return c->spec.kind == SILT_CONTAINER_APP
               ? silt_registry_find(c->all->registry, silt_slice_of(c->sandbox))
               : NULL;
}

static void name_sandbox(struct silt_container *c)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    (void)SHA256((const unsigned char *)c->row.name, strlen(c->row.name), hash);
    memcpy(c->sandbox, "w-", 3);
    for (size_t i = 0; i < SILT_CONTAINER_SANDBOX_HEX / 2; i++)
        (void)snprintf(c->sandbox + 2 + i * 2, 3, "%02x", hash[i]);
}

/* End */

static void finish(struct silt_container *c);

void silt_container_free(struct silt_grave *g)
{
    struct silt_container *c = silt_outer(g, struct silt_container, grave);
    silt_container_row_fini(&c->row);
    silt_arena_fini(&c->arena);
    free(c);
}

static void on_delay(struct silt_timer *t)
{
    finish(silt_outer(t, struct silt_container, delay));
}

/* Waiters are answered before the state changes; a client that asks after its answer sees the new
 * state. */
static void finish(struct silt_container *c)
{
    silt_container_tell_waits(c, false);
    silt_log(SILT_LOG_INFO, "container.exit", "container=%.12s sandbox=%s code=%d", c->row.id,
             c->sandbox, c->row.exit_code);
    if (silt_container_is_going(c)) {
        silt_container_remove_now(c, c->state == SILT_CONTAINER_IS_ENDING_CONDEMNED);
        return;
    }
    silt_container_enter(c, SILT_CONTAINER_IS_EXITED);
    silt_container_remove_itself(c);
}

static void report(struct silt_container *c)
{
    if (c->all->exit_delay_ms > 0 && c->spec.kind == SILT_CONTAINER_APP)
        silt_loop_after(silt_container_loop(c), &c->delay, c->all->exit_delay_ms);
    else
        finish(c);
}

static void on_dropped(void *context)
{
    struct silt_container *c = context;
    if (--c->drops == 0)
        report(c);
}

void silt_container_end(struct silt_container *c, int32_t code)
{
    silt_container_end_as(c, code, SILT_CONTAINER_IS_ENDING);
}

/* Connections first, then waiters, then the state: engine clients rely on this order. */
void silt_container_end_as(struct silt_container *c, int32_t code, enum silt_container_state how)
{
    struct silt_sandbox *s = silt_container_sandbox(c);
    if (c->state >= SILT_CONTAINER_IS_ENDING)
        return;
    if (silt_container_is_up(c) && c->process != NULL)
        silt_container_keep_output(c, c->process);
    silt_container_enter(c, how);
    silt_loop_cancel(silt_container_loop(c), &c->stop);
    silt_container_unmount(c);
    silt_process_unwatch(&c->watch);
    silt_waiter_leave(&c->waiter);
    c->process = NULL;
    c->row.exit_code = code;
    c->row.status =
        how == SILT_CONTAINER_IS_ENDING_CONDEMNED ? SILT_CONTAINER_GOING : SILT_CONTAINER_EXITED;
    c->row.ended_ms = silt_clock_wall_ms();
    silt_container_save(c);
    c->drops = 1;
    if (c->all->hooks.cut != NULL)
        c->all->hooks.cut(c->all->hooks.context, c);
    if (s != NULL) {
        c->drops += silt_exposed_ports_close_direct(s, on_dropped, c);
        silt_sandbox_stop(s, "exit", "the container has ended");
    }
    if (c->spec.kind == SILT_CONTAINER_SIDECAR && c->all->hooks.unlisten != NULL)
        c->all->hooks.unlisten(c->all->hooks.context, c);
    on_dropped(c);
}

void silt_container_could_not_start(struct silt_container *c, const struct silt_error *e)
{
    struct silt_sandbox *s = silt_container_sandbox(c);
    silt_loop_cancel(silt_container_loop(c), &c->stop);
    silt_process_unwatch(&c->watch);
    c->process = NULL;
    silt_container_enter(c, SILT_CONTAINER_IS_EXITED);
    c->row.status = SILT_CONTAINER_EXITED;
    c->row.exit_code = SILT_CONTAINER_NOT_FOUND_CODE;
    c->row.ended_ms = silt_clock_wall_ms();
    silt_container_save(c);
    if (s != NULL)
        silt_sandbox_stop(s, "exit", "the container's program could not be started");
    silt_container_tell_waits(c, false);
    silt_container_tell_asks(&c->starters, e);
    silt_container_remove_itself(c);
}

/* Creation */

struct silt_container *silt_container_new(struct silt_containers *all)
{
    struct silt_container *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    c->all = all;
    c->listen = -1;
    c->delay.on_time = on_delay;
    c->stop.on_time = silt_container_on_stop;
    c->grave.free = silt_container_free;
    silt_arena_init(&c->arena, ARENA_MAX);
    silt_list_init(&c->link);
    silt_list_init(&c->starters);
    silt_list_init(&c->waits);
    silt_list_init(&c->removers);
    silt_list_init(&c->watch.link);
    silt_list_init(&c->waiter.link);
    return c;
}

void silt_container_add(struct silt_container *c)
{
    struct silt_containers *all = c->all;
    name_sandbox(c);
    silt_list_append(&all->list, &c->link);
    all->count++;
    silt_map_put(&all->by_name, silt_slice_of(c->row.name), c);
    silt_map_put(&all->by_id, silt_slice_of(c->row.id), c);
}

static bool is_image_of_sidecar(const struct silt_containers *all, silt_slice image)
{
    silt_list_each(it, &all->list)
    {
        const struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (c->spec.kind == SILT_CONTAINER_SIDECAR && silt_slice_eq(c->spec.image, image))
            return true;
    }
    return false;
}

/* workerd fills a volume through a container of the sidecar's image that it never starts, so the
 * image need not exist here. */
static int find_image(struct silt_container *c, struct silt_container_image *image,
                      struct silt_error *e)
{
    struct silt_registry *r = c->all->registry;
    if (silt_container_image(r, c->spec.image, image, e) == 0)
        return 0;
    if (c->spec.mount_count == 0 || !is_image_of_sidecar(c->all, c->spec.image))
        return -1;
    return silt_container_image(r, silt_slice_of(r->settings.image), image, e);
}

static int check(struct silt_container *c, struct silt_container_image *image, struct silt_error *e)
{
    if (c->spec.kind != SILT_CONTAINER_APP)
        return 0; /* its image is never used */
    struct silt_sandbox_options ignored;
    if (find_image(c, image, e) < 0
        || silt_container_size(c->all->registry, image, &ignored, e) < 0)
        return -1;
    if (c->spec.sidecar.len > 0) {
        struct silt_container *sidecar = silt_container_find(c->all, c->spec.sidecar);
        if (sidecar == NULL || sidecar->spec.kind != SILT_CONTAINER_SIDECAR)
            return silt_fail(e, SILT_NOT_FOUND, "No such container: %.*s", (int)c->spec.sidecar.len,
                             c->spec.sidecar.data);
    }
    return 0;
}

static char *copy_of(silt_slice s)
{
    char *copy = strndup(s.len > 0 ? s.data : "", s.len);
    if (copy == NULL)
        abort();
    return copy;
}

bool silt_container_is_made(struct silt_container *c, struct silt_container_ask *a)
{
    silt_list_init(&a->link);
    if (c->state != SILT_CONTAINER_IS_CLEARING)
        return true;
    silt_list_append(&c->starters, &a->link);
    return false;
}

int silt_container_create(struct silt_containers *all, silt_slice name, silt_slice body,
                          uint32_t uid, struct silt_container **ret, struct silt_error *e)
{
    struct silt_container_image image = {0};
    if (name.len > 0 && silt_map_find(&all->by_name, name) != NULL)
        return silt_fail(e, SILT_CONFLICT,
                         "Conflict. The container name \"/%.*s\" is already in use", (int)name.len,
                         name.data);
    if (all->count >= SILT_CONTAINERS_MAX)
        return silt_fail(e, SILT_LIMIT, "there are %zu containers already", all->count);
    if (silt_store_admit(all->registry->store, e) < 0)
        return -1;
    struct silt_container *c = silt_container_new(all);
    silt_id_random_hex(c->row.id);
    c->row.name = name.len > 0 ? copy_of(name) : strndup(c->row.id, 12);
    c->row.body = copy_of(body);
    if (silt_container_spec_read(&c->arena, silt_slice_of(c->row.body), &c->spec, e) < 0
        || check(c, &image, e) < 0) {
        silt_container_free(&c->grave);
        return -1;
    }
    c->row.uid = uid;
    c->row.number = silt_registry_number(all->registry);
    c->row.created_ms = silt_clock_wall_ms();
    memcpy(c->row.digest, image.digest, sizeof(c->row.digest));
    c->builtin = image.builtin && c->spec.kind == SILT_CONTAINER_APP;
    silt_container_name_trust(c);
    if (silt_store_put_container(all->registry->store, &c->row, e) < 0) {
        silt_container_free(&c->grave);
        return -1;
    }
    silt_container_add(c);
    if (silt_container_take_files(c, e) < 0)
        return -1;
    if (c->spec.kind == SILT_CONTAINER_SIDECAR)
        silt_container_begin_capture(c);
    *ret = c;
    return 0;
}

/* All of them */

struct silt_containers *silt_containers_new(struct silt_registry *r)
{
    struct silt_containers *all = calloc(1, sizeof(*all));
    if (all == NULL)
        abort();
    *all = (struct silt_containers){
        .registry = r, .diag = -1, .upkeep = {.on_time = silt_containers_on_upkeep}};
    silt_list_init(&all->list);
    silt_list_init(&all->volumes);
    silt_map_init(&all->by_name);
    silt_map_init(&all->by_id);
    return all;
}

void silt_containers_free(struct silt_containers *all)
{
    if (all == NULL)
        return;
    silt_loop_cancel(all->registry->loop, &all->upkeep);
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_outer(it, struct silt_container, link);
        silt_loop_cancel(silt_container_loop(c), &c->delay);
        silt_loop_cancel(silt_container_loop(c), &c->stop);
        silt_container_unmount(c);
        silt_process_unwatch(&c->watch);
        silt_waiter_leave(&c->waiter);
        silt_container_forget_output(c);
        silt_list_remove(&c->link);
        silt_container_free(&c->grave);
    }
    silt_volumes_free(all);
    silt_map_fini(&all->by_name);
    silt_map_fini(&all->by_id);
    silt_close_fd(&all->diag);
    free(all);
}
