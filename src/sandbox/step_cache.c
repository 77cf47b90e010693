/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/step_cache.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

struct step {
    struct silt_link link; /* in registry->steps, the one used last at the end */
    struct silt_step_row row;
    struct silt_image *image; /* borrowed: counted in its `cached` */
};

static silt_slice key_of(const uint8_t *key)
{
    return (silt_slice){(const char *)key, SILT_DIGEST_SIZE};
}

static struct step *add(struct silt_registry *r, const struct silt_step_row *row, struct silt_image *i)
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

struct silt_image *silt_step_cache_find(struct silt_registry *r, const uint8_t key[SILT_DIGEST_SIZE])
{
    struct step *s = silt_map_find(&r->steps_by_key, key_of(key));
    if (s == NULL)
        return NULL;
    silt_list_remove(&s->link);
    silt_list_append(&r->steps, &s->link);
    save(r, s);
    return s->image;
}

void silt_step_cache_put(struct silt_registry *r, const uint8_t key[SILT_DIGEST_SIZE], struct silt_image *i)
{
    struct silt_step_row row;
    struct step *s = silt_map_find(&r->steps_by_key, key_of(key));
    silt_image_hold(i);
    if (s != NULL)
        remove_step(r, s);
    while (r->steps_by_key.used > 0 && r->steps_by_key.used >= r->settings.build_steps)
        remove_step(r, silt_list_first(&r->steps, struct step, link));
    if (r->settings.build_steps > 0) {
        memcpy(row.key, key, sizeof(row.key));
        memcpy(row.digest, i->row.digest, sizeof(row.digest));
        save(r, add(r, &row, i));
    }
    silt_image_release(i);
}

size_t silt_step_cache_clear(struct silt_registry *r)
{
    size_t count = r->steps_by_key.used;
    while (!silt_list_empty(&r->steps))
        remove_step(r, silt_list_first(&r->steps, struct step, link));
    return count;
}

static void load(void *context, const struct silt_step_row *row)
{
    struct silt_registry *r = context;
    struct silt_image *i = silt_image_by_digest(r, row->digest);
    if (i != NULL)
        (void)add(r, row, i);
}

int silt_step_cache_load(struct silt_registry *r, struct silt_error *e)
{
    return silt_store_each_step(r->store, load, r, e);
}

void silt_step_cache_forget(struct silt_registry *r)
{
    silt_list_each(it, &r->steps)
        free(silt_container_of(it, struct step, link));
    silt_list_init(&r->steps);
    silt_map_fini(&r->steps_by_key);
}
