/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/images: list, import a tar under a name, remove. */
#include "sandbox/image.h"
#include "api/api.h"

#include <stdlib.h>

static void add_image(struct silt_buf *b, const struct silt_image_row *row)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("name"));
    silt_json_string(b, silt_slice_of(row->name));
    silt_api_digest(b, row->digest);
    silt_json_key(b, SILT_LIT("sizeBytes"));
    silt_json_u64(b, row->bytes);
    silt_json_key(b, SILT_LIT("createdAt"));
    silt_api_time(b, row->created_ms);
    silt_json_key(b, SILT_LIT("kind"));
    silt_json_string(b, row->host_usr ? SILT_LIT("host") : SILT_LIT("tree"));
    silt_json_close(b, '}');
}

SILT_HANDLER(silt_api_image_list)
{
    struct silt_api *api = silt_api_of(r);
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, 4 << 20);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("images"));
    silt_json_open(&b, '[');
    silt_list_each(it, &api->registry->images)
        add_image(&b, &silt_container_of(it, struct silt_image, link)->row);
    silt_json_close(&b, ']');
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
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

static void on_done(struct silt_import_sink *sink, const struct silt_image_row *row)
{
    struct put *p = silt_container_of(sink, struct put, sink);
    struct silt_http_request *r = p->request;
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    add_image(&b, row);
    r->on_gone = NULL;
    free(p);
    silt_api_answer(r, 201, &b);
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

SILT_HANDLER(silt_api_image_put)
{
    enum { TAR_MAX_GIB = 64 };
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    silt_slice kind = silt_query(r, SILT_LIT("kind"));
    if (silt_id_check_image(args[0], &e) < 0) {
        silt_api_refuse_field(r, "name", e.text);
        return;
    }
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
    if (silt_import_start(api->registry, args[0], silt_slice_eq(kind, SILT_LIT("host")), &p->sink, &p->import,
                          &e)
        < 0) {
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
    if (silt_id_check_image(args[0], &e) < 0) {
        silt_api_refuse_field(r, "name", e.text);
        return;
    }
    if (silt_image_remove(api->registry, args[0], &existed, &e) < 0) {
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
    silt_json_string(&b, args[0]);
    silt_json_key(&b, SILT_LIT("deleted"));
    silt_json_bool(&b, existed);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}
