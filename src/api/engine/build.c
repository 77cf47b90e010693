/* SPDX-License-Identifier: Apache-2.0 */
/* POST /build, as sent by `DOCKER_BUILDKIT=0 docker build`: the same build as POST
 * /v1/images/build, reported in Docker's format, one JSON object per line. */
#include "api/engine/engine.h"
#include "json/json.h"
#include "sandbox/build/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_MAX_BYTES = 8 << 20, ID_DIGITS = 12 };

struct building {
    struct silt_build_sink sink;
    struct silt_http_request *request; /* borrowed */
    struct silt_build *build;          /* NULL: finished */
    struct silt_json_escape escape;
    struct silt_error failure; /* code SILT_OK: none */
    bool begun;                /* the response head has been sent */
    bool ended;                /* the request body is complete */
    struct silt_buf names;     /* names given to the image, one per line */
};

static struct building *of(struct silt_build_sink *sink)
{
    return silt_outer(sink, struct building, sink);
}

/* Buffers lines until the body is complete: docker sends all of it before it reads. */
static void write_line(struct building *g, struct silt_buf *b)
{
    silt_buf_add(b, SILT_LIT("\r\n"));
    if (!g->begun)
        silt_http_begin(g->request, 200, SILT_LIT("application/json"),
                        SILT_LIT("Api-Version: " SILT_ENGINE_API "\r\n"));
    g->begun = true;
    silt_http_write(g->request, silt_buf_slice(b));
}

static void say(struct building *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct building *g, const char *format, ...)
{
    char text[2048];
    silt_auto_buf b;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    silt_buf_init(&b, LINE_MAX_BYTES);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "stream", text);
    silt_json_close(&b, '}');
    write_line(g, &b);
}

static void on_room(struct silt_build_sink *sink)
{
    silt_http_pause(of(sink)->request, false);
}

static void on_step(struct silt_build_sink *sink, const struct silt_build_step *s)
{
    say(of(sink), "Step %zu/%zu : %.*s\n%s", s->number, s->total,
        (int)(s->text.len < 1000 ? s->text.len : 1000), s->text.data,
        s->cached ? " ---> Using cache\n" : "");
}

static void on_output(struct silt_build_sink *sink, silt_slice bytes)
{
    struct building *g = of(sink);
    silt_auto_buf b;
    silt_buf_init(&b, LINE_MAX_BYTES);
    silt_buf_add(&b, SILT_LIT("{\"stream\":\""));
    silt_json_escape(&g->escape, &b, bytes);
    silt_buf_add(&b, SILT_LIT("\"}"));
    write_line(g, &b);
}

static bool is_full(struct silt_build_sink *sink)
{
    return silt_http_pending(of(sink)->request) >= SILT_HTTP_MARK;
}

static void on_notice(struct silt_build_sink *sink, const char *text)
{
    say(of(sink), "%s\n", text);
}

static struct silt_http_request *over(struct building *g)
{
    struct silt_http_request *r = g->request;
    r->on_gone = NULL;
    r->on_drain = NULL;
    silt_buf_fini(&g->names);
    free(g);
    return r;
}

static void on_done(struct silt_build_sink *sink, const struct silt_image *image)
{
    struct building *g = of(sink);
    silt_auto_buf b;
    char id[2 * SILT_DIGEST_SIZE + 1];
    silt_slice rest = silt_buf_slice(&g->names), name;
    for (size_t i = 0; i < SILT_DIGEST_SIZE; i++)
        (void)snprintf(id + i * 2, 3, "%02x", image->row.digest[i]);
    silt_buf_init(&b, 4096);
    silt_buf_addf(&b, "{\"aux\":{\"ID\":\"sha256:%s\"}}", id);
    write_line(g, &b);
    say(g, "Successfully built %.*s\n", ID_DIGITS, id);
    while (rest.len > 0 && silt_slice_split(&rest, '\n', &name))
        if (name.len > 0)
            say(g, "Successfully tagged %.*s\n", (int)name.len, name.data);
    silt_http_end(over(g));
}

static void tell_error(struct building *g)
{
    silt_auto_buf b;
    silt_buf_init(&b, LINE_MAX_BYTES);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("errorDetail"));
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "message", g->failure.text);
    silt_json_close(&b, '}');
    silt_json_add_text(&b, "error", g->failure.text);
    silt_json_close(&b, '}');
    write_line(g, &b);
    silt_http_end(over(g));
}

/* May be called while the context is still arriving: the rest is read first, then the error is
 * sent. */
static void on_failed(struct silt_build_sink *sink, const struct silt_error *e, size_t step)
{
    struct building *g = of(sink);
    (void)step;
    g->build = NULL;
    g->failure = *e;
    if (g->ended)
        tell_error(g);
    else if (g->request->owner == g)
        silt_http_pause(g->request, false);
}

static void on_gone(struct silt_http_request *r)
{
    struct building *g = r->owner;
    if (g->build != NULL)
        silt_build_abort(g->build);
    (void)over(g);
}

static void on_drain(struct silt_http_request *r)
{
    struct building *g = r->owner;
    if (g->build != NULL)
        silt_build_resume(g->build);
}

static void on_piece(struct silt_http_request *r, silt_slice piece, bool end)
{
    struct building *g = r->owner;
    bool room = g->build == NULL || silt_build_feed(g->build, piece);
    g->ended = end;
    if (end && g->build == NULL)
        tell_error(g);
    else if (end)
        silt_build_end(g->build);
    else if (!room && g->build != NULL)
        silt_http_pause(r, true);
}

static struct building *new_building(struct silt_http_request *r,
                                     const struct silt_build_options *o)
{
    struct building *g = calloc(1, sizeof(*g));
    if (g == NULL)
        abort();
    g->request = r;
    g->sink = (struct silt_build_sink){.room = on_room,
                                       .step = on_step,
                                       .output = on_output,
                                       .full = is_full,
                                       .notice = on_notice,
                                       .done = on_done,
                                       .failed = on_failed};
    silt_buf_init(&g->names, 64 << 10);
    for (size_t i = 0; i < o->name_count; i++)
        silt_buf_addf(&g->names, "%s\n", o->names[i]);
    return g;
}

SILT_HANDLER(silt_engine_docker_build)
{
    struct silt_api *api = silt_engine_of(r)->api;
    struct silt_error e;
    (void)args;
    if (silt_slice_eq(silt_engine_query(r, "version"), SILT_LIT("2"))
        || silt_engine_query(r, "remote").len > 0) {
        silt_engine_refuse(r, 400,
                           "only builds from a directory, without BuildKit, are served: "
                           "DOCKER_BUILDKIT=0 docker build DIRECTORY, or silt-docker build");
        return;
    }
    struct silt_build_options *o = silt_arena_alloc(r->arena, sizeof(*o));
    if (o == NULL)
        abort();
    memset(o, 0, sizeof(*o));
    if (!silt_api_build_options(r, o))
        return;
    struct building *g = new_building(r, o);
    if (silt_build_start(api->registry, o, &g->sink, &g->build, &e) < 0) {
        silt_engine_refuse_error(over(g), &e);
        return;
    }
    if (g->failure.code != SILT_OK)
        g->build = NULL;
    r->owner = g;
    r->on_gone = on_gone;
    r->on_drain = on_drain;
    silt_http_consume(r, api->registry->settings.build_context_max + (1 << 20), on_piece);
}
