/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container/volume.h"
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/container/internal.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/file/transfer.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#define PLACE "/mnt" /* where a volume's files are in its sandbox */

/* Volumes */

static void free_volume(struct silt_grave *g)
{
    struct silt_volume *v = silt_outer(g, struct silt_volume, grave);
    silt_volume_row_fini(&v->row);
    free(v);
}

static struct silt_volume *add(struct silt_containers *all, const struct silt_volume_row *row)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    struct silt_volume *v = calloc(1, sizeof(*v));
    if (v == NULL)
        abort();
    *v = (struct silt_volume){.all = all, .row = *row, .grave = {.free = free_volume}};
    (void)SHA256((const unsigned char *)row->name, strlen(row->name), hash);
    memcpy(v->sandbox, "v-", 3);
    for (size_t i = 0; i < 20; i++)
        (void)snprintf(v->sandbox + 2 + i * 2, 3, "%02x", hash[i]);
    silt_list_init(&v->link);
    silt_list_init(&v->waiter.link);
    silt_list_init(&v->removers);
    silt_list_append(&all->volumes, &v->link);
    all->volume_count++;
    return v;
}

struct silt_volume *silt_volume_find(struct silt_containers *all, silt_slice name)
{
    silt_list_each(it, &all->volumes)
    {
        struct silt_volume *v = silt_outer(it, struct silt_volume, link);
        if (silt_slice_eq(silt_slice_of(v->row.name), name))
            return v;
    }
    return NULL;
}

static void load(void *context, struct silt_volume_row *row)
{
    if (row->name == NULL)
        silt_volume_row_fini(row);
    else
        (void)add(context, row);
}

int silt_volumes_load(struct silt_containers *all, struct silt_error *e)
{
    return silt_store_each_volume(all->registry->store, load, all, e);
}

void silt_volumes_free(struct silt_containers *all)
{
    silt_list_each(it, &all->volumes)
    {
        struct silt_volume *v = silt_outer(it, struct silt_volume, link);
        silt_waiter_leave(&v->waiter);
        silt_list_remove(&v->link);
        free_volume(&v->grave);
    }
}

static int refuse_going(const struct silt_volume *v, struct silt_error *e)
{
    return silt_fail(e, SILT_CONFLICT,
                     v->stuck ? "volume %s could not be removed; remove it again"
                              : "volume %s is being removed",
                     v->row.name);
}

int silt_volume_create(struct silt_containers *all, silt_slice name, silt_slice labels,
                       struct silt_volume **ret, bool *ret_existed, struct silt_error *e)
{
    if (!silt_volume_name_is_good(name))
        return silt_fail(
            e, SILT_INVALID,
            "volume name must match [a-zA-Z0-9][a-zA-Z0-9_.-]*, of at most %d characters",
            SILT_VOLUME_NAME_MAX);
    *ret = silt_volume_find(all, name);
    *ret_existed = *ret != NULL;
    if (*ret != NULL)
        return (*ret)->going ? refuse_going(*ret, e) : 0;
    if (all->volume_count >= SILT_VOLUMES_MAX)
        return silt_fail(e, SILT_LIMIT, "there are %d volumes already", SILT_VOLUMES_MAX);
    struct silt_volume_row row = {.name = strndup(name.data, name.len),
                                  .labels =
                                      labels.len > 0 ? strndup(labels.data, labels.len) : NULL,
                                  .created_ms = silt_clock_wall_ms()};
    if (row.name == NULL || (labels.len > 0 && row.labels == NULL))
        abort();
    if (silt_store_put_volume(all->registry->store, &row, e) < 0) {
        silt_volume_row_fini(&row);
        return -1;
    }
    *ret = add(all, &row);
    return 0;
}

static void is_gone(struct silt_volume *v)
{
    struct silt_containers *all = v->all;
    struct silt_error e;
    if (silt_store_remove_volume(all->registry->store, v->row.name, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.remove", "volume=%s error=%s", v->row.name, e.text);
    silt_list_remove(&v->link);
    all->volume_count--;
    silt_loop_bury(all->registry->loop, &v->grave);
    silt_container_tell_asks(&v->removers, NULL);
}

/* If it were gone, the next volume of its name would get the files. */
static void could_not_go(struct silt_volume *v, const struct silt_error *e)
{
    silt_log(SILT_LOG_ERROR, "volume.remove", "volume=%s sandbox=%s error=\"%s\"", v->row.name,
             v->sandbox, e->text);
    v->stuck = true;
    silt_container_tell_asks(&v->removers, e);
}

static void on_destroyed(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_volume *v = silt_outer(w, struct silt_volume, waiter);
    (void)s;
    if (e != NULL)
        could_not_go(v, e);
    else
        is_gone(v);
}

static bool is_used(const struct silt_volume *v)
{
    silt_list_each(it, &v->all->list)
    {
        const struct silt_container *c = silt_outer(it, struct silt_container, link);
        for (size_t i = 0; i < c->spec.mount_count; i++)
            if (silt_slice_eq(c->spec.mounts[i].volume, silt_slice_of(v->row.name)))
                return true;
    }
    return false;
}

int silt_volume_remove(struct silt_volume *v, struct silt_container_ask *a, struct silt_error *e)
{
    struct silt_sandbox *s = silt_registry_find(v->all->registry, silt_slice_of(v->sandbox));
    if (is_used(v))
        return silt_fail(e, SILT_CONFLICT, "remove %s: volume is in use", v->row.name);
    silt_list_init(&a->link);
    silt_list_append(&v->removers, &a->link);
    if (v->going && !v->stuck)
        return 0;
    v->going = true;
    v->stuck = false;
    v->waiter.on_ready = on_destroyed;
    if (s != NULL)
        silt_sandbox_destroy(s, &v->waiter);
    else
        is_gone(v);
    return 0;
}

int silt_volume_use(struct silt_volume *v, struct silt_waiter *w, struct silt_error *e)
{
    struct silt_registry *r = v->all->registry;
    struct silt_sandbox *s = silt_registry_find(r, silt_slice_of(v->sandbox));
    silt_list_init(&w->link);
    if (v->going)
        return refuse_going(v, e);
    if (s != NULL) {
        silt_sandbox_wait(s, w);
        return 0;
    }
    enum { SLEEP_S = 60 }; /* it is awake only while files are copied */
    struct silt_sandbox_options o = {.limits = r->default_limits,
                                     .labels = SILT_LIT("{\"silt.volume\":\"true\"}"),
                                     .life = {.sleep_after_s = SLEEP_S, .stop_after_s = SLEEP_S},
                                     .network = SILT_NET_NONE};
    memcpy(o.type, r->settings.type, sizeof(o.type));
    return silt_registry_create(r, silt_slice_of(v->sandbox), &o, w, e);
}

struct silt_volume *silt_container_volume_at(struct silt_container *c, silt_slice path,
                                             struct silt_buf *ret_path)
{
    for (size_t i = c->spec.mount_count; i > 0; i--) { /* deeper mounts come later */
        const struct silt_container_mount *m = &c->spec.mounts[i - 1];
        bool below = silt_slice_starts(path, m->target)
                     && (path.len == m->target.len || path.data[m->target.len] == '/');
        if (!below || c->row.started_ms > 0) /* once started, it has its own copy */
            continue;
        silt_buf_add(ret_path, SILT_LIT(PLACE));
        silt_buf_add(ret_path, (silt_slice){path.data + m->target.len, path.len - m->target.len});
        return silt_volume_find(c->all, m->volume);
    }
    return NULL;
}

/* Copies */

struct silt_mounting {
    struct silt_container *container; /* borrowed */
    struct silt_waiter waiter, other;
    struct silt_transfer transfer;
    struct silt_work_sink sink;
    struct silt_work *work; /* in the container, before or after the transfer; NULL: none */
    size_t at;              /* index of the mount */
    struct silt_buf copies; /* as in the container's row */
    void (*on_done)(struct silt_container *c, const struct silt_error *e);
    struct silt_grave grave;
};

static void free_mounting(struct silt_grave *g)
{
    struct silt_mounting *m = silt_outer(g, struct silt_mounting, grave);
    silt_buf_fini(&m->copies);
    free(m);
}

void silt_container_unmount(struct silt_container *c)
{
    struct silt_mounting *m = c->mounting;
    c->mounting = NULL;
    if (m == NULL)
        return;
    silt_waiter_leave(&m->waiter);
    silt_waiter_leave(&m->other);
    silt_transfer_leave(&m->transfer);
    if (m->work != NULL)
        silt_work_leave(m->work);
    silt_loop_bury(c->all->registry->loop, &m->grave);
}

/* Saved when the container runs. */
static void keep_copies(struct silt_mounting *m)
{
    struct silt_container_row *row = &m->container->row;
    free(row->copies);
    row->copies = m->copies.data;
    row->copies_len = m->copies.len;
    silt_buf_init(&m->copies, 0);
}

static void finish(struct silt_mounting *m, const struct silt_error *e)
{
    struct silt_container *c = m->container;
    void (*on_done)(struct silt_container *, const struct silt_error *) = m->on_done;
    keep_copies(m);
    silt_container_unmount(c);
    on_done(c, e);
}

static void next(struct silt_mounting *m);

static struct silt_sandbox *running(struct silt_mounting *m, const char *id)
{
    struct silt_sandbox *s = silt_registry_find(m->container->all->registry, silt_slice_of(id));
    return s != NULL && s->state == SILT_SANDBOX_RUNNING ? s : NULL;
}

static const struct silt_container_mount *mount_of(const struct silt_mounting *m)
{
    return &m->container->spec.mounts[m->at];
}

static int ask(struct silt_mounting *m, struct silt_work_request *q, struct silt_error *e)
{
    struct silt_sandbox *s = running(m, m->container->sandbox);
    q->path = mount_of(m)->target;
    q->patience_ms = SILT_WORK_PATIENCE_MS;
    return s != NULL ? silt_work_start(s, q, &m->sink, &m->work, e)
                     : silt_fail(e, SILT_GONE, "the container has ended");
}

/* The resolved location of the copy: links on the way may change later. */
static void on_place(struct silt_mounting *m, silt_slice path)
{
    bool is_path = path.len > 1 && path.len < SILT_WORKER_PATH_MAX && path.data[0] == '/'
                   && memchr(path.data, 0, path.len) == NULL;
    m->work = NULL;
    silt_buf_add(&m->copies, is_path ? path : mount_of(m)->target);
    silt_buf_add_byte(&m->copies, 0);
    m->at++;
    next(m);
}

static void on_directory(struct silt_work_sink *s, enum silt_worker_say type, silt_slice body,
                         bool last)
{
    if (last)
        on_place(silt_outer(s, struct silt_mounting, sink),
                 type == SILT_WORKER_SAY_DATA ? body : (silt_slice){NULL, 0});
}

static void on_no_directory(struct silt_work_sink *s, const struct silt_error *e)
{
    (void)e;
    on_place(silt_outer(s, struct silt_mounting, sink), (silt_slice){NULL, 0});
}

/* An empty volume has no directory yet, but the container gets one. */
static void on_transferred(struct silt_transfer *t, const struct silt_error *e)
{
    struct silt_mounting *m = silt_outer(t, struct silt_mounting, transfer);
    struct silt_work_request q = {.op = SILT_WORKER_DIRECTORY};
    struct silt_error own;
    m->sink = (struct silt_work_sink){.said = on_directory, .failed = on_no_directory};
    if (e != NULL && e->sys != ENOENT)
        finish(m, e);
    else if (m->container->spec.kind == SILT_CONTAINER_COPY)
        finish(m, NULL);
    else if (ask(m, &q, &own) < 0)
        finish(m, &own);
}

static void copy(struct silt_mounting *m, const char *from, const char *to, silt_slice path)
{
    struct silt_sandbox *source = running(m, from), *target = running(m, to);
    struct silt_error e;
    m->transfer.on_done = on_transferred;
    if (source == NULL || target == NULL) {
        (void)silt_fail(&e, SILT_GONE, "what a volume is copied from or to has ended");
        finish(m, &e);
    } else if (silt_transfer_start(&m->transfer, source, SILT_LIT(PLACE), target, path, &e) < 0) {
        finish(m, &e);
    }
}

static void fill(struct silt_mounting *m)
{
    struct silt_volume *v = silt_volume_find(m->container->all, mount_of(m)->volume);
    m->work = NULL;
    copy(m, v != NULL ? v->sandbox : "", m->container->sandbox, mount_of(m)->target);
}

static void on_cleared(struct silt_work_sink *s, enum silt_worker_say type, silt_slice body,
                       bool last)
{
    (void)type;
    (void)body;
    if (last)
        fill(silt_outer(s, struct silt_mounting, sink));
}

/* EBUSY: the directory is a mount of the sandbox, and empty now. What is left otherwise would be
 * taken for the volume's. */
static void on_not_cleared(struct silt_work_sink *s, const struct silt_error *e)
{
    struct silt_mounting *m = silt_outer(s, struct silt_mounting, sink);
    m->work = NULL;
    if (e->sys == ENOENT || e->sys == EBUSY)
        fill(m);
    else
        finish(m, e);
}

/* The volume's sandbox runs: first remove what the image has at the target. */
static void on_source(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_mounting *m = silt_outer(w, struct silt_mounting, waiter);
    struct silt_work_request q = {.op = SILT_WORKER_DELETE,
                                  .ask = {.flags = SILT_WORKER_RECURSIVE}};
    struct silt_error own;
    m->sink = (struct silt_work_sink){.said = on_cleared, .failed = on_not_cleared};
    if (s == NULL)
        finish(m, e);
    else if (ask(m, &q, &own) < 0)
        finish(m, &own);
}

static void next(struct silt_mounting *m)
{
    struct silt_container *c = m->container;
    struct silt_error e;
    if (m->at >= c->spec.mount_count) {
        finish(m, NULL);
        return;
    }
    struct silt_volume *v;
    bool existed;
    m->waiter.on_ready = on_source;
    if (silt_volume_create(c->all, mount_of(m)->volume, (silt_slice){NULL, 0}, &v, &existed, &e) < 0
        || silt_volume_use(v, &m->waiter, &e) < 0)
        finish(m, &e);
}

static struct silt_mounting *
begin(struct silt_container *c, void (*on_done)(struct silt_container *, const struct silt_error *))
{
    struct silt_mounting *m = calloc(1, sizeof(*m));
    if (m == NULL)
        abort();
    *m = (struct silt_mounting){
        .container = c, .on_done = on_done, .grave = {.free = free_mounting}};
    silt_list_init(&m->waiter.link);
    silt_list_init(&m->other.link);
    silt_buf_init(&m->transfer.held, 0);
    silt_buf_init(&m->copies, SILT_CONTAINER_MOUNTS_MAX * (SILT_WORKER_PATH_MAX + 1));
    c->mounting = m;
    return m;
}

void silt_container_mount(struct silt_container *c, struct silt_sandbox *s,
                          void (*on_mounted)(struct silt_container *c, const struct silt_error *e))
{
    (void)s;
    next(begin(c, on_mounted));
}

static void on_both(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_mounting *m = silt_outer(w, struct silt_mounting, other);
    const struct silt_container_spec *spec = &m->container->spec;
    struct silt_volume *from = silt_volume_find(m->container->all, spec->copy_from),
                       *to = silt_volume_find(m->container->all, spec->copy_to);
    if (s == NULL)
        finish(m, e);
    else
        copy(m, from != NULL ? from->sandbox : "", to != NULL ? to->sandbox : "", SILT_LIT(PLACE));
}

static void on_first(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_mounting *m = silt_outer(w, struct silt_mounting, waiter);
    struct silt_volume *v;
    struct silt_error own;
    bool existed;
    m->other.on_ready = on_both;
    if (s == NULL)
        finish(m, e);
    else if (silt_volume_create(m->container->all, m->container->spec.copy_to,
                                (silt_slice){NULL, 0}, &v, &existed, &own)
                 < 0
             || silt_volume_use(v, &m->other, &own) < 0)
        finish(m, &own);
}

void silt_container_copy(struct silt_container *c,
                         void (*on_copied)(struct silt_container *c, const struct silt_error *e))
{
    struct silt_mounting *m = begin(c, on_copied);
    struct silt_volume *v;
    struct silt_error e;
    bool existed;
    m->waiter.on_ready = on_first;
    if (silt_volume_create(c->all, c->spec.copy_from, (silt_slice){NULL, 0}, &v, &existed, &e) < 0
        || silt_volume_use(v, &m->waiter, &e) < 0)
        finish(m, &e);
}
