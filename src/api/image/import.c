/* SPDX-License-Identifier: Apache-2.0 */
/* PUT /v1/images/{name}, POST /v1/images/import: imports an archive as an image. */
#include "api/image/image.h"
#include "sandbox/image/import.h"

#include <stdlib.h>

struct put {
    struct silt_import_sink sink;
    struct silt_http_request *request;
    struct silt_import *import;
};

static void on_drained(struct silt_import_sink *sink)
{
    struct put *p = silt_outer(sink, struct put, sink);
    silt_http_pause(p->request, false);
}

static void on_done(struct silt_import_sink *sink, const struct silt_image *image, const char *name)
{
    struct put *p = silt_outer(sink, struct put, sink);
    struct silt_http_request *r = p->request;
    uint64_t left_out = sink->left_out;
    r->on_gone = NULL;
    free(p);
    silt_api_answer_import(r, image, name, left_out);
}

static void on_failed(struct silt_import_sink *sink, const struct silt_error *e)
{
    struct put *p = silt_outer(sink, struct put, sink);
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

/* Normalized, in the request's arena; NULL if absent. False: already answered with an error. */
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

static bool read_format(struct silt_http_request *r, enum silt_fetch_format *ret)
{
    static const char *const names[SILT_FETCH_FORMAT_MAX] = {[SILT_FETCH_AUTO] = "auto",
                                                             [SILT_FETCH_TAR] = "tar",
                                                             [SILT_FETCH_OCI] = "oci",
                                                             [SILT_FETCH_DOCKER] = "docker"};
    silt_slice text = silt_query(r, SILT_LIT("format"));
    *ret = SILT_FETCH_AUTO;
    if (text.data == NULL)
        return true;
    for (unsigned f = 0; f < SILT_FETCH_FORMAT_MAX; f++)
        if (silt_slice_eq(text, silt_slice_of(names[f]))) {
            *ret = (enum silt_fetch_format)f;
            return true;
        }
    silt_api_refuse_field(r, "format", "must be auto, tar, oci or docker");
    return false;
}

/* Which image of the archive; NULL if absent. False: already answered with an error. */
static bool read_image(struct silt_http_request *r, const char **ret)
{
    silt_slice raw = silt_query(r, SILT_LIT("image")), image = {NULL, 0};
    *ret = NULL;
    if (raw.data == NULL)
        return true;
    bool good = silt_query_decode(r, raw, &image) && image.len > 0
                && image.len < SILT_IMAGE_NAME_SIZE && !silt_slice_has_byte(image, 0)
                && silt_slice_is_utf8(image);
    if (good)
        *ret = silt_arena_dup(r->arena, image);
    if (*ret == NULL)
        silt_api_refuse_field(r, "image", "is no name of an image");
    return *ret != NULL;
}

static bool read_kind(struct silt_http_request *r, bool *ret_host)
{
    silt_slice kind = silt_query(r, SILT_LIT("kind"));
    *ret_host = silt_slice_eq(kind, SILT_LIT("host"));
    if (kind.data == NULL || *ret_host || silt_slice_eq(kind, SILT_LIT("tree")))
        return true;
    silt_api_refuse_field(r, "kind", "must be tree or host");
    return false;
}

static void start(struct silt_http_request *r, struct silt_import_options *o)
{
    enum { ARCHIVE_MAX_GIB = 64 };
    struct silt_error e;
    if (!read_config(r, &o->config) || !read_kind(r, &o->host_usr) || !read_format(r, &o->format)
        || !read_image(r, &o->image))
        return;
    struct put *p = calloc(1, sizeof(*p));
    if (p == NULL)
        abort();
    p->sink =
        (struct silt_import_sink){.drained = on_drained, .done = on_done, .failed = on_failed};
    p->request = r;
    if (silt_import_start(silt_api_of(r)->registry, o, &p->sink, &p->import, &e) < 0) {
        free(p);
        silt_api_refuse_error(r, &e);
        return;
    }
    r->owner = p;
    r->on_gone = on_gone;
    silt_http_consume(r, (uint64_t)ARCHIVE_MAX_GIB << 30, on_piece);
}

SILT_HANDLER(silt_api_image_put)
{
    char name[SILT_IMAGE_NAME_SIZE];
    struct silt_import_options o = {.name = name};
    if (silt_api_image_name(r, args[0], name))
        start(r, &o);
}

/* The names come from the archive. */
SILT_HANDLER(silt_api_image_import)
{
    struct silt_import_options o = {.name = NULL};
    (void)args;
    start(r, &o);
}
