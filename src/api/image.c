/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/images: list, look at, import a tar under a name, give and take names. */
#include "api/image.h"

#include <stdlib.h>

enum { LIST_MAX = 64 << 20 };

static bool is_none(const uint8_t digest[SILT_DIGEST_SIZE])
{
    static const uint8_t none[SILT_DIGEST_SIZE];
    return memcmp(digest, none, SILT_DIGEST_SIZE) == 0;
}

/* `name` is NULL for one without. */
static void add_image(struct silt_buf *b, const struct silt_image *i, const char *name)
{
    const struct silt_image_row *row = &i->row;
    silt_json_open(b, '{');
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
    silt_json_close(b, '}');
}

/* One entry for each name; with ?all=1 also those that others need and nobody names. */
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
    silt_list_each(it, &api->registry->images) {
        const struct silt_image *i = silt_container_of(it, struct silt_image, link);
        silt_list_each(name, &i->names)
            add_image(&b, i, silt_container_of(name, struct silt_image_name, link)->text);
        if (all && silt_list_empty(&i->names))
            add_image(&b, i, NULL);
    }
    silt_json_close(&b, ']');
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

/* False: refused. */
static bool read_name(struct silt_http_request *r, silt_slice raw, char ret[SILT_IMAGE_NAME_SIZE])
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

/* By whatever silt_image_find takes. NULL: refused. */
static struct silt_image *find(struct silt_http_request *r, silt_slice raw)
{
    silt_slice name;
    struct silt_image *i = NULL;
    if (silt_query_decode(r, raw, &name))
        i = silt_image_find(silt_api_of(r)->registry, name, NULL);
    if (i == NULL)
        silt_api_refuse(r, SILT_API_IMAGE_NOT_FOUND, (silt_slice){NULL, 0}, "there is no such image");
    return i;
}

void silt_api_answer_image(struct silt_http_request *r, int status, const struct silt_image *i, const char *name)
{
    silt_auto_buf b;
    silt_buf_init(&b, 2 * SILT_IMAGE_CONFIG_MAX);
    add_image(&b, i, name);
    silt_api_answer(r, status, &b);
}

SILT_HANDLER(silt_api_image_get)
{
    const struct silt_image *i = find(r, args[0]);
    char name[SILT_IMAGE_NAME_SIZE];
    if (i == NULL)
        return;
    silt_image_title(i, name);
    silt_api_answer_image(r, 200, i, silt_list_empty(&i->names) ? NULL : name);
}

/* Another name for an image: ?name=. */
SILT_HANDLER(silt_api_image_tag)
{
    struct silt_image *i = find(r, args[0]);
    char name[SILT_IMAGE_NAME_SIZE];
    struct silt_error e;
    if (i == NULL || !read_name(r, silt_query(r, SILT_LIT("name")), name))
        return;
    if (silt_image_tag(silt_api_of(r)->registry, i, name, &e) < 0)
        silt_api_refuse_error(r, &e);
    else
        silt_api_answer_image(r, 201, i, name);
}

struct put {
    struct silt_import_sink sink;
    struct silt_http_request *request;
    struct silt_import *import;
};

static void on_drained(struct silt_import_sink *sink)
{
    struct put *p = silt_container_of(sink, struct put, sink);
    silt_http_pause(p->request, false);
}

static void on_done(struct silt_import_sink *sink, const struct silt_image *image, const char *name)
{
    struct put *p = silt_container_of(sink, struct put, sink);
    struct silt_http_request *r = p->request;
    r->on_gone = NULL;
    free(p);
    silt_api_answer_image(r, 201, image, name);
}

static void on_failed(struct silt_import_sink *sink, const struct silt_error *e)
{
    struct put *p = silt_container_of(sink, struct put, sink);
    struct silt_http_request *r = p->request;
    r->on_gone = NULL;
    free(p);
    silt_api_refuse_error(r, e);
}

static void on_piece(struct silt_http_request *r, silt_slice piece, bool end)
{
    struct put *p = r->owner;
    bool room = silt_import_feed(p->import, piece);
    if (end)
        silt_import_end(p->import);
    else if (!room)
        silt_http_pause(r, true);
}

static void on_gone(struct silt_http_request *r)
{
    struct put *p = r->owner;
    silt_import_abort(p->import);
    free(p);
}

/* In its one spelling, in the request's arena; NULL: not given. False: refused. */
static bool read_config(struct silt_http_request *r, const char **ret)
{
    silt_slice raw = silt_query(r, SILT_LIT("config")), json;
    struct silt_image_config config;
    struct silt_error e;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_IMAGE_CONFIG_MAX);
    *ret = NULL;
    if (raw.data == NULL)
        return true;
    if (!silt_query_decode(r, raw, &json)) {
        silt_api_refuse_field(r, "config", "is badly escaped");
        return false;
    }
    if (silt_image_config_read(r->arena, json, &config, &e) < 0) {
        silt_api_refuse_field(r, "config", e.text);
        return false;
    }
    silt_image_config_write(&b, &config);
    *ret = b.broken ? NULL : silt_arena_dup(r->arena, silt_buf_slice(&b));
    if (*ret == NULL)
        silt_api_refuse_field(r, "config", "is too large");
    return *ret != NULL;
}

SILT_HANDLER(silt_api_image_put)
{
    enum { TAR_MAX_GIB = 64 };
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    silt_slice kind = silt_query(r, SILT_LIT("kind"));
    char name[SILT_IMAGE_NAME_SIZE];
    struct silt_import_options o = {.name = name, .host_usr = silt_slice_eq(kind, SILT_LIT("host"))};
    if (!read_name(r, args[0], name) || !read_config(r, &o.config))
        return;
    if (kind.data != NULL && !silt_slice_eq(kind, SILT_LIT("host"))
        && !silt_slice_eq(kind, SILT_LIT("tree"))) {
        silt_api_refuse_field(r, "kind", "must be tree or host");
        return;
    }
    struct put *p = calloc(1, sizeof(*p));
    if (p == NULL)
        abort();
    p->sink = (struct silt_import_sink){.drained = on_drained, .done = on_done, .failed = on_failed};
    p->request = r;
    if (silt_import_start(api->registry, &o, &p->sink, &p->import, &e) < 0) {
        free(p);
        silt_api_refuse_error(r, &e);
        return;
    }
    r->owner = p;
    r->on_gone = on_gone;
    silt_http_consume(r, (uint64_t)TAR_MAX_GIB << 30, on_piece);
}

SILT_HANDLER(silt_api_image_remove)
{
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    bool existed = false;
    char name[SILT_IMAGE_NAME_SIZE];
    if (!read_name(r, args[0], name))
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
