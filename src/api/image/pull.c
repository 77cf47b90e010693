/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/images/pull: pulls an image from a registry. Sends server-sent events: output,
 * unpacking, then done or error. The pull ends if the client disconnects. */
#include "sandbox/image/pull.h"
#include "api/core/api.h"
#include "api/core/sse.h"
#include "base/reference.h"
#include "sandbox/core/image.h"

#include <stdlib.h>

enum { EVENT_MAX = 1 << 20 };

struct pulling {
    struct silt_pull_sink sink;
    struct silt_sse sse;
    struct silt_pull *pull;
    struct silt_json_escape escape;
};

static struct pulling *of(struct silt_pull_sink *sink)
{
    return silt_outer(sink, struct pulling, sink);
}

static void add_text(struct silt_buf *b, const char *key, silt_slice text)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_string(b, text);
}

static void on_output(struct silt_pull_sink *sink, silt_slice bytes)
{
    struct pulling *g = of(sink);
    silt_sse_send_output(&g->sse, &g->escape, bytes);
}

static bool is_full(struct silt_pull_sink *sink)
{
    return silt_http_pending(of(sink)->sse.request) >= SILT_HTTP_MARK;
}

static void on_fetched(struct silt_pull_sink *sink)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "unpacking");
    silt_sse_send(&of(sink)->sse, &b);
}

static void finish(struct pulling *g, struct silt_buf *last)
{
    silt_sse_send(&g->sse, last);
    struct silt_http_request *r = silt_sse_fini(&g->sse);
    free(g);
    silt_http_end(r);
}

static void on_done(struct silt_pull_sink *sink, const struct silt_image *image, const char *name)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "done");
    silt_api_digest(&b, SILT_LIT("id"), image->row.digest);
    add_text(&b, "name", silt_slice_of(name));
    finish(of(sink), &b);
}

static const char *code_name(const struct silt_error *e)
{
    if (e->code == SILT_DENIED)
        return "REGISTRY_DENIED";
    if (e->code == SILT_TIMEOUT)
        return "OPERATION_TIMEOUT";
    return e->code == SILT_INVALID
               ? "PULL_FAILED"
               : silt_api_code_name(e->code == SILT_NO_SPACE ? SILT_API_DISK_FULL
                                                             : silt_api_code_of(e));
}

static void on_failed(struct silt_pull_sink *sink, const struct silt_error *e)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "error");
    add_text(&b, "code", silt_slice_of(code_name(e)));
    add_text(&b, "message", silt_slice_of(e->text));
    finish(of(sink), &b);
}

static void on_gone(struct silt_http_request *r)
{
    struct pulling *g = r->owner;
    silt_pull_abort(g->pull);
    (void)silt_sse_fini(&g->sse);
    free(g);
}

/* A half-close is fine: check whether the client still reads. */
static void on_halved(struct silt_http_request *r)
{
    struct pulling *g = r->owner;
    silt_sse_probe(&g->sse);
}

static void on_drain(struct silt_http_request *r)
{
    struct pulling *g = r->owner;
    silt_pull_resume(g->pull);
}

static void start(struct silt_call *c, const struct silt_pull_options *o)
{
    struct silt_http_request *r = c->request;
    struct pulling *g = calloc(1, sizeof(*g));
    struct silt_error e;
    if (g == NULL)
        abort();
    g->sink = (struct silt_pull_sink){.output = on_output,
                                      .full = is_full,
                                      .fetched = on_fetched,
                                      .done = on_done,
                                      .failed = on_failed};
    silt_sse_init(&g->sse, c->api->loop, r);
    if (silt_pull_start(c->api->registry, o, &g->sink, &g->pull, &e) < 0) {
        free(g);
        if (e.code == SILT_UNAVAILABLE)
            silt_api_refuse(r, SILT_API_NETWORK_UNAVAILABLE, (silt_slice){NULL, 0}, "%s", e.text);
        else
            silt_api_refuse_error(r, &e);
        return;
    }
    r->owner = g;
    r->on_gone = on_gone;
    r->on_drain = on_drain;
    r->on_halved = on_halved;
    silt_sse_begin(&g->sse);
}

static void pull(struct silt_call *c)
{
    struct silt_pull_source source;
    struct silt_pull_options o = {.source = &source, .name = source.name};
    silt_slice reference = {NULL, 0}, name = {NULL, 0};
    char other[SILT_IMAGE_NAME_SIZE];
    struct silt_error e;
    if (!silt_body_string(c, "reference", &reference) || !silt_body_string(c, "name", &name)
        || !silt_body_string(c, "username", &o.user)
        || !silt_body_string(c, "password", &o.password))
        return;
    if (silt_pull_read(reference, &source, &e) < 0) {
        silt_api_refuse_field(c->request, "reference", e.text);
        return;
    }
    if (name.data != NULL && silt_reference_read(name, other, &e) < 0) {
        silt_api_refuse_field(c->request, "name", e.text);
        return;
    }
    if (name.data == NULL && silt_image_is_reserved(c->api->registry, source.name)) {
        silt_api_refuse_field(
            c->request, "name",
            "is needed here: by itself this image would take the place of one that Silt uses");
        return;
    }
    if (name.data != NULL)
        o.name = other;
    start(c, &o);
}

static const struct silt_call_kind pull_call = {
    .body = SILT_BODY_REQUIRED, .sandbox = SILT_CALL_NO_SANDBOX, .run = pull};

SILT_HANDLER(silt_api_image_pull)
{
    silt_call_begin(r, args, &pull_call);
}
