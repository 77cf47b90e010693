/* SPDX-License-Identifier: Apache-2.0 */
/* seal: makes images from sandboxes. The row is saved first: if siltd dies in between, the next one
 * finds an image without a name and removes it, with its files if they exist. */
#include "base/clock.h"
#include "base/fd.h"
#include "sandbox/image/seal.h"
#include "sandbox/core/recovery.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/facet.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

struct silt_seal {
    struct silt_link link;        /* in registry->seals */
    struct silt_sandbox *sandbox; /* borrowed: lives while its `seals` counts us */
    struct silt_image *image;     /* held */
    silt_image_sealed *on_sealed; /* NULL: cancelled */
    void *context;
    bool asked, soon, compare;
    uint8_t since[SILT_DIGEST_SIZE]; /* with `compare` */
    int left_out;                    /* a sealed memfd; -1: none */
    size_t name_count;
    char names[][SILT_IMAGE_NAME_SIZE];
};

static int finish(struct silt_seal *s, const struct silt_priv_answer *a, struct silt_error *e)
{
    struct silt_image *i = s->image;
    if (!a->ok) {
        *e = a->body.error;
        return -1;
    }
    i->row.bytes = a->body.sealed.bytes;
    if (silt_store_put_image(i->registry->store, &i->row, e) < 0)
        return -1;
    silt_recovery_on_image(i->registry, i->row.digest);
    for (size_t n = 0; n < s->name_count; n++)
        if (silt_image_tag(i->registry, i, s->names[n], e) < 0)
            return -1;
    return 0;
}

static void ask_next(struct silt_registry *r);

static void on_answer(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_seal *s = context;
    struct silt_registry *r = s->image->registry;
    struct silt_error e = {0};
    (void)fds;
    (void)nfds;
    bool same = a->ok && a->body.sealed.unchanged != 0;
    bool good = !same && finish(s, a, &e) == 0;
    if (!good && s->sandbox->state == SILT_SANDBOX_DESTROYING) /* its files went first */
        (void)silt_fail(&e, SILT_GONE, "sandbox '%s' was destroyed", s->sandbox->row.id);
    if (good ? a->body.sealed.crowded != 0 : !same && e.code == SILT_NO_SPACE)
        silt_facets_call(r, make_room, r);
    silt_sandbox_on_sealed(s->sandbox); /* may free it */
    if (s->on_sealed != NULL)
        s->on_sealed(s->context, good ? s->image : NULL, same ? NULL : &e);
    silt_image_release(s->image);
    silt_list_remove(&s->link);
    free(s);
    ask_next(r);
}

/* One at a time: it waits for the disk, and silt-priv has few workers. */
static void ask_next(struct silt_registry *r)
{
    if (silt_list_empty(&r->seals))
        return;
    struct silt_seal *s = silt_outer(r->seals.next, struct silt_seal, link);
    struct silt_priv_request q = {.op = SILT_PRIV_SEAL, .slot = s->sandbox->row.slot};
    if (s->asked)
        return;
    s->asked = true;
    memcpy(q.body.seal.digest, s->image->row.digest, SILT_DIGEST_SIZE);
    memcpy(q.body.seal.parent, silt_image_files(s->image->parent), SILT_DIGEST_SIZE);
    q.body.seal.soon = s->soon;
    q.body.seal.compare = s->compare;
    memcpy(q.body.seal.since, s->since, sizeof(q.body.seal.since));
    int left_out = silt_take_fd(&s->left_out);
    silt_priv_ask(r->priv, &q, &left_out, left_out >= 0, on_answer, s);
}

static void forget(struct silt_registry *r)
{
    silt_list_each(it, &r->seals)
    {
        struct silt_seal *s = silt_outer(it, struct silt_seal, link);
        silt_close_fd(&s->left_out);
        free(s);
    }
    silt_list_init(&r->seals);
}

void silt_seal_leave(struct silt_seal *s)
{
    s->on_sealed = NULL;
}

static int new_image(const struct silt_image *base, const char *config, struct silt_image **ret,
                     struct silt_error *e)
{
    struct silt_image_row row = {.layered = true,
                                 .host_usr = base->row.host_usr,
                                 .created_ms = silt_clock_wall_ms(),
                                 .config = strdup(config != NULL ? config : base->row.config)};
    memcpy(row.parent, base->row.digest, sizeof(row.parent));
    if (getrandom(row.digest, sizeof(row.digest), 0) != (ssize_t)sizeof(row.digest))
        abort();
    return silt_image_new(base->registry, &row, ret, e);
}

static struct silt_seal *new_seal(struct silt_sandbox *sandbox, const struct silt_seal_options *o)
{
    struct silt_seal *s = calloc(1, sizeof(*s) + o->name_count * SILT_IMAGE_NAME_SIZE);
    if (s == NULL)
        abort();
    s->sandbox = sandbox;
    s->soon = o->soon;
    s->compare = o->since != NULL;
    if (o->since != NULL)
        memcpy(s->since, o->since, sizeof(s->since));
    s->left_out = -1;
    for (; s->name_count < o->name_count; s->name_count++)
        (void)snprintf(s->names[s->name_count], SILT_IMAGE_NAME_SIZE, "%s",
                       o->names[s->name_count]);
    return s;
}

int silt_image_seal(struct silt_sandbox *sandbox, const struct silt_seal_options *o,
                    silt_image_sealed *on_sealed, void *context, struct silt_seal **ret,
                    struct silt_error *e)
{
    const struct silt_image *base = silt_image_of(sandbox);
    struct silt_image *image;
    bool has_files = !sandbox->fresh && sandbox->state != SILT_SANDBOX_DESTROYING;
    silt_auto_fd left_out = -1;
    if (base == NULL || !has_files)
        return silt_fail(e, SILT_CONFLICT, "sandbox '%s' has no files yet, or goes",
                         sandbox->row.id);
    if ((o->left_out.len > 0 && silt_fd_seal(o->left_out, &left_out, e) < 0)
        || new_image(base, o->config, &image, e) < 0)
        return -1;
    struct silt_seal *s = new_seal(sandbox, o);
    s->left_out = silt_take_fd(&left_out);
    s->image = image;
    s->on_sealed = on_sealed;
    s->context = context;
    silt_list_append(&sandbox->registry->seals, &s->link);
    silt_image_hold(image);
    sandbox->seals++;
    if (ret != NULL)
        *ret = s;
    ask_next(sandbox->registry);
    return 0;
}

const struct silt_facet silt_seal_facet = {.free = forget};
