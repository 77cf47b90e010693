/* SPDX-License-Identifier: Apache-2.0 */
/* Disk usage and cleanup: GET /system/df, POST /…/prune. */
#include "api/engine/engine.h"
#include "json/json.h"
#include "sandbox/core/image.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/image/step_cache.h"

enum { ANSWER_MAX = 8 << 20 };

static uint64_t sum_images(const struct silt_registry *registry)
{
    uint64_t sum = 0;
    silt_list_each(it, &registry->images) sum += silt_outer(it, struct silt_image, link)->row.bytes;
    return sum;
}

SILT_HANDLER(silt_engine_df)
{
    struct silt_engine *g = silt_engine_of(r);
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, ANSWER_MAX);
    silt_json_open(&b, '{');
    silt_json_add_u64(&b, "LayersSize", sum_images(g->all->registry));
    silt_json_key(&b, SILT_LIT("Images"));
    silt_engine_add_images(&b, g->all->registry, true);
    silt_json_key(&b, SILT_LIT("Containers"));
    silt_engine_add_containers(&b, g, r->arena);
    silt_json_key(&b, SILT_LIT("Volumes"));
    silt_json_raw(&b, SILT_LIT("[]"));
    silt_json_key(&b, SILT_LIT("BuildCache"));
    silt_json_raw(&b, SILT_LIT("[]"));
    silt_json_close(&b, '}');
    silt_engine_answer(r, 200, &b);
}

static void answer_pruned(struct silt_http_request *r, const char *what,
                          const struct silt_buf *list)
{
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, silt_slice_of(what));
    silt_json_raw(&b, list != NULL ? silt_buf_slice(list) : SILT_LIT("[]"));
    silt_json_add_u64(&b, "SpaceReclaimed", 0); /* the space is freed in the background */
    silt_json_close(&b, '}');
    silt_engine_answer(r, 200, &b);
}

/* Removes exited containers. Files kept for the next container of a name stay; `docker rm` deletes
 * them. */
SILT_HANDLER(silt_engine_container_prune)
{
    struct silt_engine *g = silt_engine_of(r);
    silt_auto_buf list;
    (void)args;
    silt_buf_init(&list, ANSWER_MAX);
    silt_json_open(&list, '[');
    silt_list_each(it, &g->all->list)
    {
        struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (c->spec.kind != SILT_CONTAINER_APP || !silt_container_has_exited(c)
            || silt_container_class(c).data != NULL)
            continue; /* workerd relies on the ones it created */
        silt_json_string(&list, silt_slice_of(c->row.id));
        silt_container_remove(c, false, NULL);
    }
    silt_json_close(&list, ']');
    answer_pruned(r, "ContainersDeleted", &list);
}

/* An image is removed with its last name, so there are no unused ones. */
SILT_HANDLER(silt_engine_image_prune)
{
    (void)args;
    answer_pruned(r, "ImagesDeleted", NULL);
}

SILT_HANDLER(silt_engine_build_prune)
{
    (void)args;
    (void)silt_step_cache_clear(silt_engine_of(r)->all->registry);
    answer_pruned(r, "CachesDeleted", NULL);
}

SILT_HANDLER(silt_engine_network_prune)
{
    (void)args;
    answer_pruned(r, "NetworksDeleted", NULL);
}

SILT_HANDLER(silt_engine_volume_prune)
{
    (void)args;
    answer_pruned(r, "VolumesDeleted",
                  NULL); /* volumes are snapshots, named later by their creators */
}
