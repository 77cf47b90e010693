/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/images/{name}/export: an image as an archive. */
#include "api/image/image.h"
#include "sandbox/image/export.h"

#include <stdlib.h>

struct giving {
    struct silt_export_sink sink;
    struct silt_http_request *request;
    struct silt_export *export;
    bool begun;
};

static void on_bytes(struct silt_export_sink *sink, silt_slice bytes)
{
    struct giving *g = silt_outer(sink, struct giving, sink);
    if (!g->begun)
        silt_http_begin(g->request, 200, SILT_LIT("application/x-tar"),
                        SILT_LIT("X-Content-Type-Options: nosniff\r\n"));
    g->begun = true;
    silt_http_write(g->request, bytes);
    if (silt_http_pending(g->request) >= SILT_HTTP_MARK)
        silt_export_pause(g->export, true);
}

static void on_drain(struct silt_http_request *r)
{
    struct giving *g = r->owner;
    silt_export_pause(g->export, false);
}

/* An incomplete archive must not look complete. */
static void on_done(struct silt_export_sink *sink, const struct silt_error *e)
{
    struct giving *g = silt_outer(sink, struct giving, sink);
    struct silt_http_request *r = g->request;
    bool begun = g->begun;
    r->on_gone = NULL;
    r->on_drain = NULL;
    free(g);
    if (e != NULL && !begun)
        silt_api_refuse_error(r, e);
    else if (e != NULL)
        silt_http_cut(r);
    else
        silt_http_end(r);
}

static void on_gone(struct silt_http_request *r)
{
    struct giving *g = r->owner;
    silt_export_abort(g->export);
    free(g);
}

static bool read_format(struct silt_http_request *r, enum silt_fetch_format *ret)
{
    silt_slice text = silt_query(r, SILT_LIT("format"));
    *ret = SILT_FETCH_OCI;
    if (text.data == NULL || silt_slice_eq(text, SILT_LIT("oci")))
        return true;
    *ret = silt_slice_eq(text, SILT_LIT("docker")) ? SILT_FETCH_DOCKER : SILT_FETCH_TAR;
    if (*ret == SILT_FETCH_DOCKER || silt_slice_eq(text, SILT_LIT("tar")))
        return true;
    silt_api_refuse_field(r, "format", "must be oci, docker or tar");
    return false;
}

/* The requested name if the image has it, else its first name; empty if it has none. */
static void choose_name(const struct silt_image *i, silt_slice asked,
                        char ret[SILT_IMAGE_NAME_SIZE])
{
    char spelled[SILT_IMAGE_NAME_SIZE];
    struct silt_error e;
    ret[0] = 0;
    if (!silt_list_empty(&i->names))
        silt_image_title(i, ret);
    if (silt_reference_read(asked, spelled, &e) < 0)
        return;
    silt_list_each(
        it, &i->names) if (strcmp(silt_outer(it, struct silt_image_name, link)->text, spelled) == 0)
        memcpy(ret, spelled, sizeof(spelled));
}

SILT_HANDLER(silt_api_image_export)
{
    struct silt_image *i = silt_api_image_find(r, args[0]);
    char name[SILT_IMAGE_NAME_SIZE];
    struct silt_export_options o = {.name = name};
    silt_slice asked = {NULL, 0};
    struct silt_error e;
    if (i == NULL || !read_format(r, &o.format))
        return;
    if (i->row.host_usr) {
        silt_api_refuse_field(r, "name",
                              "is an image of kind host: most of it is this machine's /usr");
        return;
    }
    (void)silt_query_decode(r, args[0], &asked);
    choose_name(i, asked, name);
    struct giving *g = calloc(1, sizeof(*g));
    if (g == NULL)
        abort();
    g->sink = (struct silt_export_sink){.bytes = on_bytes, .done = on_done};
    g->request = r;
    if (silt_export_start(i, &o, &g->sink, &g->export, &e) < 0) {
        free(g);
        silt_api_refuse_error(r, &e);
        return;
    }
    r->owner = g;
    r->on_gone = on_gone;
    r->on_drain = on_drain;
}
