/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/ready_pool.h"
#include "base/clock.h"
#include "sandbox/core/image.h"
#include "sandbox/core/sandbox.h"

#include <string.h>

enum {
    AFTER_FAILURE_MS = 5000,
    SOON_MS = 20,
    AT_ONCE = 2,              /* being created: one per worker of silt-priv */
    CAPTIVES = 2,             /* per kind */
    KIND_MS = 10 * 60 * 1000, /* kept this long after the last container of a kind */
};

static bool is_captive(const struct silt_sandbox *s)
{
    return s->row.network == SILT_NET_CAPTIVE;
}

static bool is_same(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, SILT_DIGEST_SIZE) == 0;
}

/* ---- counting ---- */

void silt_ready_pool_expect(struct silt_sandbox *s)
{
    struct silt_ready_pool *y = &s->registry->ready;
    s->coming = true;
    if (is_captive(s))
        y->captives_coming++;
    else
        y->coming++;
}

static void no_longer_expect(struct silt_sandbox *s)
{
    struct silt_ready_pool *y = &s->registry->ready;
    if (is_captive(s))
        y->captives_coming -= s->coming;
    else
        y->coming -= s->coming;
    s->coming = false;
}

void silt_ready_pool_add(struct silt_sandbox *s)
{
    struct silt_ready_pool *y = &s->registry->ready;
    no_longer_expect(s);
    silt_list_append(is_captive(s) ? &y->captives : &y->ordinary, &s->ready_link);
    y->count += !is_captive(s);
}

void silt_ready_pool_remove(struct silt_sandbox *s)
{
    no_longer_expect(s);
    if (silt_list_empty(&s->ready_link))
        return;
    silt_list_remove(&s->ready_link);
    s->registry->ready.count -= !is_captive(s);
}

/* ---- creating ---- */

/* `captive`: the kind to make a captive one for; NULL: an ordinary one. */
static void make(struct silt_registry *r, silt_slice image,
                 const struct silt_ready_pool_kind *captive)
{
    struct silt_error e;
    struct silt_sandbox *s;
    if (silt_store_admit(r->store, &e) < 0 || silt_registry_new_sandbox(r, image, &s, &e) < 0) {
        r->ready.failed = true; /* no image yet, or no slot: clients get the error when they ask */
        return;
    }
    memcpy(s->row.type, captive != NULL ? captive->type : r->settings.type, sizeof(s->row.type));
    s->row.limits = captive != NULL ? captive->limits : r->default_limits;
    if (captive != NULL)
        s->row.network = SILT_NET_CAPTIVE;
    silt_sandbox_save(s);
    silt_ready_pool_expect(s);
    silt_sandbox_start(s);
}

static uint32_t count_captives(const struct silt_registry *r, const uint8_t *digest)
{
    uint32_t count = 0;
    silt_list_each(it, &r->ready.captives) count +=
        is_same(silt_outer(it, struct silt_sandbox, ready_link)->row.digest, digest);
    return count;
}

static bool is_wanted(const struct silt_registry *r, const struct silt_ready_pool_kind *k)
{
    if (k->used_ms == 0 || silt_clock_ms() - k->used_ms > KIND_MS)
        return false;
    const struct silt_image *i = silt_image_by_digest(r, k->digest);
    return i != NULL && !silt_list_empty(&i->names);
}

/* One at a time: no client waits for them. */
static void make_captive(struct silt_registry *r)
{
    for (size_t i = 0; i < SILT_READY_POOL_KINDS; i++) {
        const struct silt_ready_pool_kind *k = &r->ready.kinds[i];
        char title[SILT_IMAGE_NAME_SIZE];
        if (!is_wanted(r, k) || count_captives(r, k->digest) >= CAPTIVES)
            continue;
        silt_image_title(silt_image_by_digest(r, k->digest), title);
        make(r, silt_slice_of(title), k);
        return;
    }
}

static bool has_plenty(const struct silt_registry *r)
{
    return r->ready.count * 2 >= r->settings.ready;
}

static void on_refill(struct silt_timer *t)
{
    struct silt_registry *r = silt_outer(t, struct silt_registry, ready.refill);
    struct silt_ready_pool *y = &r->ready;
    if (r->contexts_starting > 0 && has_plenty(r)) {
        silt_loop_after(r->loop, t, SOON_MS);
        return;
    }
    y->failed = false;
    while (!r->recovering && !y->failed && r->cold_starts == 0 && y->coming < AT_ONCE
           && y->count + y->coming < r->settings.ready)
        make(r, silt_slice_of(r->settings.image), NULL);
    if (!r->recovering && !y->failed && r->cold_starts == 0 && y->captives_coming == 0)
        make_captive(r);
    if (y->failed)
        silt_loop_after(r->loop, t, AFTER_FAILURE_MS);
}

void silt_ready_pool_init(struct silt_registry *r)
{
    silt_list_init(&r->ready.ordinary);
    silt_list_init(&r->ready.captives);
    r->ready.refill = (struct silt_timer){.on_time = on_refill};
}

void silt_ready_pool_refill_soon(struct silt_registry *r)
{
    struct silt_ready_pool *y = &r->ready;
    if (y->failed)
        return;
    /* The client that took the last one is about to use it. Creating the next costs as much as its
     * first command, so that comes first unless the pool runs out. */
    if (!has_plenty(r))
        silt_loop_after(r->loop, &y->refill, 0);
    else if (y->refill.place == 0)
        silt_loop_after(r->loop, &y->refill, SOON_MS);
}

void silt_ready_pool_on_failed(struct silt_registry *r)
{
    r->ready.failed = true;
    silt_loop_after(r->loop, &r->ready.refill, AFTER_FAILURE_MS);
}

/* ---- taking ---- */

/* Replaces the least recently used kind. */
static void note_kind(struct silt_registry *r, const struct silt_image *image,
                      const struct silt_sandbox_options *o)
{
    struct silt_ready_pool_kind *k = &r->ready.kinds[0];
    for (size_t i = 0; i < SILT_READY_POOL_KINDS; i++) {
        struct silt_ready_pool_kind *one = &r->ready.kinds[i];
        if (one->used_ms != 0 && is_same(one->digest, image->row.digest)) {
            k = one;
            break;
        }
        if (one->used_ms < k->used_ms)
            k = one;
    }
    memcpy(k->digest, image->row.digest, SILT_DIGEST_SIZE);
    memcpy(k->type, o->type, sizeof(k->type));
    k->limits = o->limits;
    k->used_ms = silt_clock_ms();
}

/* One with the same files; the rest of an image's configuration applies only when commands
 * start. */
static struct silt_sandbox *take(struct silt_link *from, const struct silt_image *image)
{
    silt_list_each(it, from)
    {
        struct silt_sandbox *s = silt_outer(it, struct silt_sandbox, ready_link);
        const struct silt_image *its = silt_image_of(s);
        if (its != NULL && its->row.host_usr == image->row.host_usr
            && is_same(silt_image_files(its), silt_image_files(image)))
            return s; /* ones from an older build of the image are left to upkeep */
    }
    return NULL;
}

struct silt_sandbox *silt_ready_pool_take(struct silt_registry *r, silt_slice asked,
                                          const struct silt_sandbox_options *o)
{
    const struct silt_image *image = silt_image_find(r, asked, NULL);
    bool captive = o->network == SILT_NET_CAPTIVE;
    if (image == NULL || o->ephemeral)
        return NULL;
    if (captive && r->settings.ready > 0)
        note_kind(r, image, o);
    struct silt_sandbox *s = take(captive ? &r->ready.captives : &r->ready.ordinary, image);
    if (s != NULL) {
        silt_ready_pool_remove(s);
        silt_registry_set_image(&s->row, image, asked);
    }
    return s;
}

/* ---- stale ones ---- */

static void destroy(struct silt_sandbox *s)
{
    silt_ready_pool_remove(s);
    silt_sandbox_destroy(s, NULL);
}

static bool is_stale(struct silt_registry *r, const struct silt_sandbox *s)
{
    if (!is_captive(s)) {
        const struct silt_image *now = silt_image_find(r, silt_slice_of(r->settings.image), NULL);
        return now == NULL || !is_same(s->row.digest, now->row.digest);
    }
    for (size_t i = 0; i < SILT_READY_POOL_KINDS; i++)
        if (is_wanted(r, &r->ready.kinds[i]) && is_same(r->ready.kinds[i].digest, s->row.digest))
            return false;
    return true;
}

static void remove_stale(struct silt_registry *r, struct silt_link *list)
{
    silt_list_each(it, list)
    {
        struct silt_sandbox *s = silt_outer(it, struct silt_sandbox, ready_link);
        if (is_stale(r, s))
            destroy(s);
    }
}

void silt_ready_pool_remove_stale(struct silt_registry *r)
{
    remove_stale(r, &r->ready.ordinary);
    remove_stale(r, &r->ready.captives);
}

void silt_ready_pool_drop_image(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE])
{
    silt_list_each(it, &r->ready.captives)
    {
        struct silt_sandbox *s = silt_outer(it, struct silt_sandbox, ready_link);
        if (is_same(s->row.digest, digest))
            destroy(s);
    }
}
