/* SPDX-License-Identifier: Apache-2.0 */
/* POST /images/create?fromImage=: a local image needs no registry; others are pulled, with Docker's
 * progress, one JSON object per line. */
#include "api/engine/engine.h"
#include "base/base64.h"
#include "base/reference.h"
#include "json/json.h"
#include "sandbox/core/image.h"
#include "sandbox/image/pull.h"

#include <stdio.h>
#include <stdlib.h>

enum { STATUS_MAX = 4096, AUTH_MAX = 64 << 10, NAME_MAX_BYTES = 1024 };

struct pulling {
    struct silt_pull_sink sink;
    struct silt_http_request *request; /* borrowed */
    struct silt_pull *pull;
    struct silt_buf line; /* an incomplete line of output */
    bool begun;           /* the response head has been sent */
    bool here;            /* an image of this name is already here */
};

static struct pulling *of(struct silt_pull_sink *sink)
{
    return silt_outer(sink, struct pulling, sink);
}

static void begin(struct pulling *g)
{
    if (!g->begun)
        silt_http_begin(g->request, 200, SILT_LIT("application/json"),
                        SILT_LIT("Api-Version: " SILT_ENGINE_API "\r\n"));
    g->begun = true;
}

static void say(struct pulling *g, const char *key, silt_slice text)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8 * STATUS_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, silt_slice_of(key));
    silt_json_string(&b, text);
    silt_json_close(&b, '}');
    silt_buf_add(&b, SILT_LIT("\r\n"));
    begin(g);
    silt_http_write(g->request, silt_buf_slice(&b));
}

/* skopeo's output comes from a registry: only printable characters are passed on, and line length
 * is limited. */
static void on_output(struct silt_pull_sink *sink, silt_slice bytes)
{
    struct pulling *g = of(sink);
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.data[i];
        bool end = c == '\n' || c == '\r' || g->line.len >= STATUS_MAX - 1;
        if (!end)
            silt_buf_add_byte(&g->line, c < ' ' || c > '~' ? '?' : c);
        if (end && g->line.len > 0)
            say(g, "status", silt_buf_slice(&g->line));
        if (end)
            silt_buf_clear(&g->line);
    }
}

static bool is_full(struct silt_pull_sink *sink)
{
    return silt_http_pending(of(sink)->request) >= SILT_HTTP_MARK;
}

static void on_fetched(struct silt_pull_sink *sink)
{
    say(of(sink), "status", SILT_LIT("Unpacking"));
}

static struct silt_http_request *over(struct pulling *g)
{
    struct silt_http_request *r = g->request;
    r->on_gone = NULL;
    r->on_drain = NULL;
    silt_buf_fini(&g->line);
    free(g);
    return r;
}

static void on_done(struct silt_pull_sink *sink, const struct silt_image *image, const char *name)
{
    struct pulling *g = of(sink);
    char text[SILT_IMAGE_NAME_SIZE + 64];
    (void)image;
    (void)snprintf(text, sizeof(text), "Status: Downloaded newer image for %s", name);
    say(g, "status", silt_slice_of(text));
    silt_http_end(over(g));
}

static void say_error(struct pulling *g, const char *text)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8 * STATUS_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("errorDetail"));
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("message"));
    silt_json_string(&b, silt_slice_of(text));
    silt_json_close(&b, '}');
    silt_json_key(&b, SILT_LIT("error"));
    silt_json_string(&b, silt_slice_of(text));
    silt_json_close(&b, '}');
    silt_buf_add(&b, SILT_LIT("\r\n"));
    silt_http_write(g->request, silt_buf_slice(&b));
    silt_http_end(over(g));
}

/* A client that has the image continues with it: wrangler pulls every time, even offline. */
static void on_failed(struct silt_pull_sink *sink, const struct silt_error *e)
{
    struct pulling *g = of(sink);
    if (g->here) {
        say(g, "status", silt_slice_of(e->text));
        say(g, "status",
            SILT_LIT("Status: The registry could not be asked; the image that is here is used"));
        silt_http_end(over(g));
    } else if (g->begun) {
        say_error(g, e->text);
    } else {
        silt_engine_refuse_error(over(g), e);
    }
}

static void on_gone(struct silt_http_request *r)
{
    struct pulling *g = r->owner;
    silt_pull_abort(g->pull);
    (void)over(g);
}

static void on_drain(struct silt_http_request *r)
{
    struct pulling *g = r->owner;
    silt_pull_resume(g->pull);
}

/* X-Registry-Auth: JSON in URL-safe base64. False: already answered with an error. */
static bool read_login(struct silt_http_request *r, struct silt_pull_options *o)
{
    silt_slice field = silt_http_field(r->head, SILT_LIT("x-registry-auth"));
    const struct silt_json *v = NULL;
    struct silt_error e;
    if (field.len == 0)
        return true;
    char *text = field.len <= AUTH_MAX ? silt_arena_dup(r->arena, field) : NULL;
    char *out = silt_arena_alloc(r->arena, AUTH_MAX);
    for (size_t i = 0; text != NULL && i < field.len; i++)
        text[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    silt_slice coded = {text, field.len};
    if (text == NULL || out == NULL || silt_base64_check(coded) != NULL
        || silt_json_read(r->arena, (silt_slice){out, silt_base64_decode(&coded, out, AUTH_MAX)},
                          &v, &e)
               < 0
        || v->type != SILT_JSON_OBJECT) {
        silt_engine_refuse(r, 400, "X-Registry-Auth is not JSON in base64");
        return false;
    }
    const struct silt_json *user = silt_json_get(v, SILT_LIT("username")),
                           *password = silt_json_get(v, SILT_LIT("password"));
    if (user != NULL && user->type == SILT_JSON_STRING)
        o->user = user->string;
    if (password != NULL && password->type == SILT_JSON_STRING)
        o->password = password->string;
    return true;
}

static void start(struct silt_http_request *r, const struct silt_pull_source *source, bool here)
{
    struct silt_engine *engine = silt_engine_of(r);
    struct silt_pull_options o = {.source = source, .name = source->name};
    struct silt_error e;
    if (!read_login(r, &o))
        return;
    struct pulling *g = calloc(1, sizeof(*g));
    if (g == NULL)
        abort();
    *g = (struct pulling){.request = r, .here = here};
    g->sink = (struct silt_pull_sink){.output = on_output,
                                      .full = is_full,
                                      .fetched = on_fetched,
                                      .done = on_done,
                                      .failed = on_failed};
    silt_buf_init(&g->line, STATUS_MAX);
    if (silt_pull_start(engine->all->registry, &o, &g->sink, &g->pull, &e) < 0) {
        if (here || e.code != SILT_UNAVAILABLE)
            on_failed(&g->sink, &e);
        else
            silt_engine_refuse(over(g), 404, "%s is not here: %s", source->name, e.text);
        return;
    }
    r->owner = g;
    r->on_gone = on_gone;
    r->on_drain = on_drain;
}

static void answer(struct silt_http_request *r, const char *status)
{
    silt_auto_buf b;
    silt_buf_init(&b, STATUS_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("status"));
    silt_json_string(&b, silt_slice_of(status));
    silt_json_close(&b, '}');
    silt_buf_add(&b, SILT_LIT("\r\n"));
    silt_engine_answer(r, 200, &b);
}

/* "name", "name:tag" or "name@sha256:…"; the digest may also come as the tag. */
static void write_reference(struct silt_buf *b, silt_slice from, silt_slice tag)
{
    silt_buf_add(b, from);
    if (tag.len > 0)
        silt_buf_add_byte(b, silt_slice_starts(tag, SILT_LIT("sha256:")) ? '@' : ':');
    silt_buf_add(b, tag);
}

/* workerd's own sidecar image is never pulled: we serve that role ourselves. A local image whose
 * name has no registry is ours: an image of that name on docker.io does not replace it, nor `base`
 * from any registry. */
SILT_HANDLER(silt_engine_image_create)
{
    silt_slice from = silt_engine_query(r, "fromImage"), tag = silt_engine_query(r, "tag");
    struct silt_pull_source source;
    struct silt_error e;
    bool mapped = false;
    silt_auto_buf text;
    (void)args;
    silt_buf_init(&text, NAME_MAX_BYTES);
    write_reference(&text, from, tag);
    if (from.len > 0 && memmem(from.data, from.len, "proxy-everything", 16) != NULL) {
        answer(r, "Nothing to fetch: Silt serves the sidecar itself");
        return;
    }
    if (text.broken || from.len == 0) {
        silt_engine_refuse(r, 400, "fromImage is missing or too long");
        return;
    }
    if (silt_pull_read(silt_buf_slice(&text), &source, &e) < 0) {
        silt_engine_refuse_error(r, &e);
        return;
    }
    struct silt_registry *registry = silt_engine_of(r)->all->registry;
    bool here = silt_image_find(registry, silt_slice_of(source.name), &mapped) != NULL;
    bool ours = silt_image_is_reserved(registry, source.name);
    if (mapped)
        answer(r, "Image is mapped to one of this machine");
    else if (here && (ours || !silt_pull_names_registry(&source)))
        answer(r, "Image is up to date");
    else if (ours)
        silt_engine_refuse(
            r, 404,
            "%s is not here, and no registry may give it: it is one that Silt makes sandboxes from",
            source.name);
    else
        start(r, &source, here);
}
