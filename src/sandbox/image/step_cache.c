/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/image/step_cache.h"
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/core/facet.h"

#include <stdlib.h>

enum {
    /* Results known only by digest: kept even without a cache. */
    RESULTS_MIN = 16,
    LOST_MAX = 4096,
};

struct step {
    struct silt_link link; /* in registry->steps, least recently used first */
    struct silt_step_row row;
    struct silt_image *image; /* borrowed: counted in its `cached` */
};

static silt_slice key_of(const uint8_t *key)
{
    return (silt_slice){(const char *)key, SILT_DIGEST_SIZE};
}

static struct step *add(struct silt_registry *r, const struct silt_step_row *row,
                        struct silt_image *i)
{
    struct step *s = calloc(1, sizeof(*s));
    if (s == NULL)
        abort();
    s->row = *row;
    s->image = i;
    i->cached++;
    silt_list_append(&r->steps, &s->link);
    silt_map_put(&r->steps_by_key, key_of(s->row.key), s);
    return s;
}

static void remove_step(struct silt_registry *r, struct step *s)
{
    struct silt_error e;
    struct silt_image *i = s->image;
    if (silt_store_remove_step(r->store, &s->row, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.remove", "error=%s", e.text);
    silt_map_remove(&r->steps_by_key, key_of(s->row.key));
    silt_list_remove(&s->link);
    free(s);
    i->cached--;
    silt_image_forget_unused(r, i->row.digest);
}

static void save(struct silt_registry *r, struct step *s)
{
    struct silt_error e;
    s->row.used_ms = silt_clock_wall_ms();
    if (silt_store_put_step(r->store, &s->row, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.put", "error=%s", e.text);
}

struct silt_image *silt_step_cache_find(struct silt_registry *r,
                                        const uint8_t key[SILT_DIGEST_SIZE])
{
    struct step *s = silt_map_find(&r->steps_by_key, key_of(key));
    if (s == NULL)
        return NULL;
    silt_list_remove(&s->link);
    silt_list_append(&r->steps, &s->link);
    save(r, s);
    return s->image;
}

void silt_step_cache_put(struct silt_registry *r, const uint8_t key[SILT_DIGEST_SIZE],
                         struct silt_image *i)
{
    struct silt_step_row row;
    struct step *s = silt_map_find(&r->steps_by_key, key_of(key));
    bool is_result = memcmp(key, i->row.digest, SILT_DIGEST_SIZE) == 0;
    bool wanted = is_result || r->settings.build_steps > 0;
    size_t most = !wanted                                 ? 0
                  : r->settings.build_steps < RESULTS_MIN ? RESULTS_MIN
                                                          : r->settings.build_steps;
    if (most == 0)
        return;
    silt_image_hold(i);
    if (s != NULL)
        remove_step(r, s);
    while (r->steps_by_key.used >= most)
        remove_step(r, silt_list_first(&r->steps, struct step, link));
    memcpy(row.key, key, sizeof(row.key));
    memcpy(row.digest, i->row.digest, sizeof(row.digest));
    save(r, add(r, &row, i));
    silt_image_release(i);
}

size_t silt_step_cache_clear(struct silt_registry *r)
{
    size_t count = r->steps_by_key.used;
    while (!silt_list_empty(&r->steps))
        remove_step(r, silt_list_first(&r->steps, struct step, link));
    return count;
}

static bool is_result(const struct step *s)
{
    return memcmp(s->row.key, s->row.digest, SILT_DIGEST_SIZE) == 0;
}

/* Sandboxes need the disk more. Results stay, because clients know them. */
static void make_room(struct silt_registry *r)
{
    size_t before = r->steps_by_key.used;
    silt_list_each(it, &r->steps)
    {
        struct step *s = silt_outer(it, struct step, link);
        if (!is_result(s))
            remove_step(r, s);
    }
    if (r->steps_by_key.used < before)
        silt_log(SILT_LOG_WARN, "build.forgot", "steps=%zu error=\"the disk is full\"",
                 before - r->steps_by_key.used);
}

struct loader {
    struct silt_registry *registry; /* borrowed */
    struct silt_buf lost;           /* rows whose image is gone */
};

static void load_row(void *context, const struct silt_step_row *row)
{
    struct loader *l = context;
    struct silt_image *i = silt_image_by_digest(l->registry, row->digest);
    if (i != NULL)
        (void)add(l->registry, row, i);
    else
        silt_buf_add(&l->lost, (silt_slice){(const char *)row, sizeof(*row)});
}

/* At most LOST_MAX at once: the next start removes the rest. */
static int load(struct silt_registry *r, struct silt_error *e)
{
    struct loader l = {.registry = r};
    struct silt_step_row row;
    silt_buf_init(&l.lost, LOST_MAX * sizeof(row));
    int done = silt_store_each_step(r->store, load_row, &l, e);
    for (size_t at = 0; done == 0 && at < l.lost.len; at += sizeof(row)) {
        memcpy(&row, l.lost.data + at, sizeof(row));
        done = silt_store_remove_step(r->store, &row, e);
    }
    silt_buf_fini(&l.lost);
    return done;
}

static void forget(struct silt_registry *r)
{
    silt_list_each(it, &r->steps) free(silt_outer(it, struct step, link));
    silt_list_init(&r->steps);
    silt_map_fini(&r->steps_by_key);
}

const struct silt_facet silt_step_cache_facet = {
    .load = load, .make_room = make_room, .free = forget};
