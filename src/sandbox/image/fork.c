/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/image/fork.h"
#include "base/clock.h"
#include "json/json.h"
#include "sandbox/core/facet.h"
#include "sandbox/core/journal.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/image/seal.h"

#include <stdio.h>
#include <stdlib.h>

struct member {
    struct silt_waiter waiter;
    struct fork *fork;            /* borrowed */
    struct silt_sandbox *sandbox; /* held; NULL: not begun */
};

/*   SEALING --image--> MAKING --all have files, or one failed and the others are answered--> gone
 */
struct fork {
    struct silt_link link; /* in registry->forks */
    struct silt_registry *registry;
    struct silt_image *image; /* held once it is known */
    struct silt_sandbox_row like;
    char source[SILT_ID_MAX + 1];
    size_t count, pending;
    int64_t begun_us;
    bool failed;
    struct silt_error error;
    silt_forked *on_forked;
    void *context;
    struct member members[SILT_FORKS_MAX];
    char ids[SILT_FORKS_MAX][SILT_ID_MAX + 1];
};

static void free_fork(struct fork *f)
{
    silt_list_remove(&f->link);
    silt_sandbox_row_fini(&f->like);
    free(f);
}

static void finish(struct fork *f)
{
    const struct silt_error e = f->error;
    if (!f->failed)
        silt_timing_end(f->registry, SILT_TIMING_FORK, f->begun_us);
    f->on_forked(f->context, f->failed ? &e : NULL);
    if (f->image != NULL)
        silt_image_release(f->image);
    free_fork(f);
}

static void fail(struct fork *f, const struct silt_error *e)
{
    if (!f->failed)
        f->error = *e;
    f->failed = true;
}

/* ---- the end: all or none ---- */

static bool is_alive(const struct silt_sandbox *s)
{
    return s->state != SILT_SANDBOX_DESTROYING;
}

/* A sandbox without a start time is one that a restart removes. */
static int store_all(struct fork *f, struct silt_error *e)
{
    struct silt_store *store = f->registry->store;
    struct silt_error ignored;
    int done = silt_store_begin(store, e);
    if (done < 0)
        return -1;
    for (size_t i = 0; i < f->count && done == 0; i++) {
        struct silt_sandbox *s = f->members[i].sandbox;
        s->row.started_ms = s->row.created_ms;
        if (is_alive(s))
            done = silt_sandbox_store(s, e);
    }
    if (done == 0)
        return silt_store_end(store, true, e);
    (void)silt_store_end(store, false, &ignored);
    return -1;
}

static void report(const struct fork *f, const struct silt_sandbox *s)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "from", f->source);
    silt_json_close(&b, '}');
    silt_journal_add(f->registry, s->row.id, SILT_EVENT_FORKED, silt_buf_slice(&b));
}

static void end_all(struct fork *f)
{
    struct silt_error e;
    if (!f->failed && store_all(f, &e) < 0)
        fail(f, &e);
    for (size_t i = 0; i < f->count; i++) {
        struct silt_sandbox *s = f->members[i].sandbox;
        if (s == NULL)
            continue;
        if (f->failed) {
            s->row.started_ms = 0;
            silt_sandbox_destroy(s, NULL);
        } else if (is_alive(s)) {
            silt_sandbox_be_made(s);
            report(f, s);
        }
        silt_sandbox_release(s);
    }
    finish(f);
}

/* ---- making ---- */

static void on_made(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct member *m = silt_outer(w, struct member, waiter);
    struct fork *f = m->fork;
    if (s == NULL && e->code != SILT_GONE) /* one that a client destroyed meanwhile was made, too */
        fail(f, e);
    if (--f->pending == 0)
        end_all(f);
}

static size_t depth_of(const struct silt_image *i)
{
    size_t depth = 0;
    for (; i != NULL; i = i->parent)
        depth += i->row.layered;
    return depth;
}

static int begin_one(struct fork *f, struct member *m, const char *id,
                     const struct silt_image *base, struct silt_error *e)
{
    struct silt_sandbox *s;
    if (silt_registry_new_fork(f->registry, id, base, &f->like, &s, e) < 0)
        return -1;
    s->row.death.at_ms = s->row.created_ms;
    (void)snprintf(s->row.death.message, sizeof(s->row.death.message),
                   "it was made from %s and has not run yet", f->source);
    m->fork = f;
    m->waiter.on_ready = on_made;
    m->sandbox = s;
    silt_sandbox_hold(s);
    return 0;
}

/* Every sandbox is known before the first is made: their ids are taken now, and the answers come
 * later than this function. */
static void make_all(struct fork *f)
{
    bool copies = depth_of(f->image) > SILT_FORK_LAYERS_MAX;
    const struct silt_image *base = copies ? f->image->parent : f->image;
    struct silt_error e;
    for (size_t i = 0; i < f->count && !f->failed; i++)
        if (begin_one(f, &f->members[i], f->ids[i], base, &e) < 0)
            fail(f, &e);
    for (size_t i = 0; i < f->count && !f->failed; i++)
        if (silt_sandbox_store(f->members[i].sandbox, &e) < 0)
            fail(f, &e);
    if (f->failed) {
        end_all(f);
        return;
    }
    f->pending = f->count;
    for (size_t i = 0; i < f->count; i++)
        silt_sandbox_make(f->members[i].sandbox, copies ? f->image->row.digest : NULL,
                          &f->members[i].waiter);
}

static void on_sealed(void *context, struct silt_image *image, const struct silt_error *e)
{
    struct fork *f = context;
    if (image == NULL) {
        fail(f, e);
        finish(f);
        return;
    }
    silt_image_hold(image);
    f->image = image;
    make_all(f);
}

/* ---- begin ---- */

static char *copy_text(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

static void copy_row(struct fork *f, const struct silt_sandbox_row *like)
{
    f->like = *like;
    f->like.labels = copy_text(like->labels);
    f->like.allow = copy_text(like->allow);
    f->like.env = NULL;
    if (like->env_len > 0) {
        f->like.env = malloc(like->env_len);
        if (f->like.env == NULL)
            abort();
        memcpy(f->like.env, like->env, like->env_len);
    }
    if (f->like.network != SILT_NET_CAPTIVE)
        return;
    free(f->like.allow); /* the number of its capture: that of a container of the engine socket */
    f->like.allow = NULL;
    f->like.network = SILT_NET_NONE;
}

static int check_ids(const struct silt_registry *r, const struct silt_fork_options *o,
                     struct silt_error *e)
{
    for (size_t i = 0; i < o->count; i++)
        if (silt_registry_find((struct silt_registry *)(uintptr_t)r, silt_slice_of(o->ids[i]))
            != NULL)
            return silt_fail(e, SILT_CONFLICT, "sandbox '%s' already exists", o->ids[i]);
    return 0;
}

static struct fork *new_fork(struct silt_registry *r, const struct silt_fork_options *o,
                             const char *source, silt_forked *on_forked, void *context)
{
    struct fork *f = calloc(1, sizeof(*f));
    if (f == NULL)
        abort();
    f->registry = r;
    f->on_forked = on_forked;
    f->context = context;
    f->count = o->count;
    f->begun_us = silt_clock_us();
    memcpy(f->ids, o->ids, o->count * sizeof(f->ids[0]));
    (void)snprintf(f->source, sizeof(f->source), "%s", source);
    copy_row(f, o->like);
    silt_list_init(&f->link);
    silt_list_append(&r->forks, &f->link);
    return f;
}

int silt_fork_sandbox(struct silt_sandbox *s, const struct silt_fork_options *o,
                      silt_forked *on_forked, void *context, struct silt_error *e)
{
    struct silt_seal_options how = {.soon = true};
    if (check_ids(s->registry, o, e) < 0)
        return -1;
    struct fork *f = new_fork(s->registry, o, s->row.id, on_forked, context);
    if (silt_image_seal(s, &how, on_sealed, f, NULL, e) == 0)
        return 0;
    free_fork(f);
    return -1;
}

/* The answer never comes before this returns: silt-priv is asked first, or the caller hears of it
 * here. */
int silt_fork_image(struct silt_image *i, const struct silt_fork_options *o, silt_forked *on_forked,
                    void *context, struct silt_error *e)
{
    if (check_ids(i->registry, o, e) < 0)
        return -1;
    struct fork *f = new_fork(i->registry, o, i->snapshot != NULL ? i->snapshot->id : "an image",
                              on_forked, context);
    silt_image_hold(i);
    f->image = i;
    make_all(f);
    return 0;
}

/* ---- siltd ---- */

static void open_list(struct silt_registry *r)
{
    silt_list_init(&r->forks);
}

static void forget(struct silt_registry *r)
{
    while (!silt_list_empty(&r->forks))
        free_fork(silt_list_first(&r->forks, struct fork, link));
}

const struct silt_facet silt_fork_facet = {.open = open_list, .free = forget};
