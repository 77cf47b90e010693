/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/images: list, inspect, tag, untag. */
#include "api/image/image.h"

#include <stdlib.h>

enum { LIST_MAX = 64 << 20 };

static bool is_none(const uint8_t digest[SILT_DIGEST_SIZE])
{
    static const uint8_t none[SILT_DIGEST_SIZE];
    return memcmp(digest, none, SILT_DIGEST_SIZE) == 0;
}

static void add_members(struct silt_buf *b, const struct silt_image *i, const char *name)
{
    const struct silt_image_row *row = &i->row;
    silt_json_key(b, SILT_LIT("name"));
    if (name != NULL)
        silt_json_string(b, silt_slice_of(name));
    else
        silt_json_null(b);
    silt_api_digest(b, SILT_LIT("digest"), row->digest);
    silt_json_key(b, SILT_LIT("sizeBytes"));
    silt_json_u64(b, silt_image_bytes(i));
    silt_json_key(b, SILT_LIT("createdAt"));
    silt_api_time(b, row->created_ms);
    silt_json_key(b, SILT_LIT("kind"));
    silt_json_string(b, row->host_usr ? SILT_LIT("host") : SILT_LIT("tree"));
    if (!is_none(row->parent))
        silt_api_digest(b, SILT_LIT("parent"), row->parent);
    silt_json_key(b, SILT_LIT("config"));
    silt_json_raw(b, silt_slice_of(row->config));
}

/* `name` is NULL for an unnamed image. */
static void add_image(struct silt_buf *b, const struct silt_image *i, const char *name)
{
    silt_json_open(b, '{');
    add_members(b, i, name);
    silt_json_close(b, '}');
}

/* One entry per name; ?all=1 adds unnamed images that others need. */
SILT_HANDLER(silt_api_image_list)
{
    struct silt_api *api = silt_api_of(r);
    bool all = silt_slice_eq(silt_query(r, SILT_LIT("all")), SILT_LIT("1"));
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, LIST_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("images"));
    silt_json_open(&b, '[');
    silt_list_each(it, &api->registry->images)
    {
        const struct silt_image *i = silt_outer(it, struct silt_image, link);
        silt_list_each(name, &i->names)
            add_image(&b, i, silt_outer(name, struct silt_image_name, link)->text);
        if (all && silt_list_empty(&i->names))
            add_image(&b, i, NULL);
    }
    silt_json_close(&b, ']');
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

bool silt_api_image_name(struct silt_http_request *r, silt_slice raw,
                         char ret[SILT_IMAGE_NAME_SIZE])
{
    struct silt_error e;
    silt_slice name;
    if (!silt_query_decode(r, raw, &name)) {
        silt_api_refuse_field(r, "name", "is badly escaped");
        return false;
    }
    if (silt_reference_read(name, ret, &e) < 0) {
        silt_api_refuse_field(r, "name", e.text);
        return false;
    }
    return true;
}

struct silt_image *silt_api_image_find(struct silt_http_request *r, silt_slice raw)
{
    silt_slice name;
    struct silt_image *i = NULL;
    struct silt_error e;
    char known[SILT_IMAGE_NAME_SIZE];
    bool decoded = silt_query_decode(r, raw, &name);
    if (decoded)
        i = silt_image_find(silt_api_of(r)->registry, name, NULL);
    if (i == NULL && decoded && silt_reference_read(name, known, &e) == 0)
        silt_api_refuse(r, SILT_API_IMAGE_NOT_FOUND, (silt_slice){NULL, 0},
                        "image '%s' does not exist", known);
    else if (i == NULL)
        silt_api_refuse(r, SILT_API_IMAGE_NOT_FOUND, (silt_slice){NULL, 0},
                        "there is no such image");
    return i;
}

void silt_api_answer_image(struct silt_http_request *r, int status, const struct silt_image *i,
                           const char *name)
{
    silt_auto_buf b;
    silt_buf_init(&b, 2 * SILT_IMAGE_CONFIG_MAX);
    add_image(&b, i, name);
    silt_api_answer(r, status, &b);
}

void silt_api_answer_import(struct silt_http_request *r, const struct silt_image *i,
                            const char *name, uint64_t left_out)
{
    silt_auto_buf b;
    silt_buf_init(&b, 2 * SILT_IMAGE_CONFIG_MAX);
    silt_json_open(&b, '{');
    add_members(&b, i, name);
    if (left_out > 0) {
        silt_json_key(&b, SILT_LIT("leftOut"));
        silt_json_u64(&b, left_out);
    }
    silt_json_close(&b, '}');
    silt_api_answer(r, 201, &b);
}

SILT_HANDLER(silt_api_image_get)
{
    const struct silt_image *i = silt_api_image_find(r, args[0]);
    char name[SILT_IMAGE_NAME_SIZE];
    if (i == NULL)
        return;
    silt_image_title(i, name);
    silt_api_answer_image(r, 200, i, silt_list_empty(&i->names) ? NULL : name);
}

/* Adds another name to an image: ?name=. */
SILT_HANDLER(silt_api_image_tag)
{
    struct silt_image *i = silt_api_image_find(r, args[0]);
    char name[SILT_IMAGE_NAME_SIZE];
    struct silt_error e;
    if (i == NULL || !silt_api_image_name(r, silt_query(r, SILT_LIT("name")), name))
        return;
    if (silt_image_tag(silt_api_of(r)->registry, i, name, &e) < 0)
        silt_api_refuse_error(r, &e);
    else
        silt_api_answer_image(r, 201, i, name);
}

SILT_HANDLER(silt_api_image_remove)
{
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    bool existed = false;
    char name[SILT_IMAGE_NAME_SIZE];
    if (!silt_api_image_name(r, args[0], name))
        return;
    if (silt_image_untag(api->registry, name, &existed, &e) < 0) {
        if (e.code == SILT_CONFLICT)
            silt_api_refuse(r, SILT_API_IMAGE_IN_USE, (silt_slice){NULL, 0}, "%s", e.text);
        else
            silt_api_refuse_error(r, &e);
        return;
    }
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("name"));
    silt_json_string(&b, silt_slice_of(name));
    silt_json_key(&b, SILT_LIT("deleted"));
    silt_json_bool(&b, existed);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}
