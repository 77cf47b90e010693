/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/images/build: reads a tar of the context and sends server-sent events: step, output,
 * notice, then done or error. The build ends if the client disconnects. POST /v1/images/prune
 * deletes the cached steps of earlier builds. */
#include "sandbox/build/build.h"
#include "api/core/api.h"
#include "api/core/sse.h"
#include "sandbox/image/step_cache.h"

#include <stdlib.h>

enum { EVENT_MAX = 8 << 20 };

struct building {
    struct silt_build_sink sink;
    struct silt_sse sse;
    struct silt_build *build; /* NULL: finished */
    struct silt_json_escape escape;
    bool over;            /* the last event has been sent */
    bool ended;           /* the request body is complete */
    struct silt_buf last; /* events from before the response could begin */
};

static void free_building(struct building *g)
{
    silt_buf_fini(&g->last);
    free(g);
}

static struct building *of(struct silt_build_sink *sink)
{
    return silt_outer(sink, struct building, sink);
}

static void on_room(struct silt_build_sink *sink)
{
    silt_http_pause(of(sink)->sse.request, false);
}

static void on_step(struct silt_build_sink *sink, const struct silt_build_step *s)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_begin(&of(sink)->sse);
    silt_sse_open(&b, "step");
    silt_json_key(&b, SILT_LIT("step"));
    silt_json_u64(&b, s->number);
    silt_json_key(&b, SILT_LIT("total"));
    silt_json_u64(&b, s->total);
    if (s->stage.len > 0)
        silt_json_add_slice(&b, "stage", s->stage);
    silt_json_add_slice(&b, "text", s->text);
    silt_json_key(&b, SILT_LIT("cached"));
    silt_json_bool(&b, s->cached);
    silt_sse_send(&of(sink)->sse, &b);
}

static void on_output(struct silt_build_sink *sink, silt_slice bytes)
{
    struct building *g = of(sink);
    silt_sse_send_output(&g->sse, &g->escape, bytes);
}

static bool is_full(struct silt_build_sink *sink)
{
    return silt_http_pending(of(sink)->sse.request) >= SILT_HTTP_MARK;
}

static void on_notice(struct silt_build_sink *sink, const char *text)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_begin(&of(sink)->sse);
    silt_sse_open(&b, "notice");
    silt_json_add_slice(&b, "message", silt_slice_of(text));
    silt_sse_send(&of(sink)->sse, &b);
}

static void finish(struct building *g)
{
    struct silt_http_request *r = silt_sse_fini(&g->sse);
    free_building(g);
    silt_http_end(r);
}

static void on_done(struct silt_build_sink *sink, const struct silt_image *image)
{
    struct building *g = of(sink);
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_begin(&g->sse);
    silt_sse_open(&b, "done");
    silt_api_digest(&b, SILT_LIT("id"), image->row.digest);
    silt_json_key(&b, SILT_LIT("names"));
    silt_json_open(&b, '[');
    silt_list_each(it, &image->names)
        silt_json_string(&b, silt_slice_of(silt_outer(it, struct silt_image_name, link)->text));
    silt_json_close(&b, ']');
    silt_sse_send(&g->sse, &b);
    finish(g);
}

static void tell_error(struct building *g)
{
    silt_sse_begin(&g->sse);
    silt_sse_send(&g->sse, &g->last);
    finish(g);
}

/* May be called while the context is still arriving: the rest is read first, then the error is
 * sent. */
static void on_failed(struct silt_build_sink *sink, const struct silt_error *e, size_t step)
{
    struct building *g = of(sink);
    g->over = true;
    g->build = NULL;
    silt_sse_open(&g->last, "error");
    silt_json_add_text(&g->last, "code",
                       e->code == SILT_INVALID
                           ? "BUILD_FAILED"
                           : silt_api_code_name(e->code == SILT_NO_SPACE ? SILT_API_DISK_FULL
                                                                         : silt_api_code_of(e)));
    silt_json_add_slice(&g->last, "message", silt_slice_of(e->text));
    silt_json_key(&g->last, SILT_LIT("step"));
    silt_json_u64(&g->last, step);
    if (g->ended)
        tell_error(g);
    else if (g->sse.request->owner == g)
        silt_http_pause(g->sse.request, false);
}

static void on_gone(struct silt_http_request *r)
{
    struct building *g = r->owner;
    if (g->build != NULL)
        silt_build_abort(g->build);
    (void)silt_sse_fini(&g->sse);
    free_building(g);
}

/* A half-close is fine: check whether the client still reads. */
static void on_halved(struct silt_http_request *r)
{
    struct building *g = r->owner;
    silt_sse_probe(&g->sse);
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
    bool room = g->over || silt_build_feed(g->build, piece);
    g->ended = end;
    if (end && g->over)
        tell_error(g);
    else if (end)
        silt_build_end(g->build);
    else if (!room && !g->over)
        silt_http_pause(r, true);
}

/* ---- the request ---- */

static bool read_text(struct silt_http_request *r, const char *name, silt_slice *ret)
{
    silt_slice raw = silt_query(r, silt_slice_of(name));
    if (raw.data == NULL || raw.len == 0)
        return true;
    if (silt_query_decode(r, raw, ret) && ret->len < PATH_MAX && !silt_slice_has_byte(*ret, 0))
        return true;
    silt_api_refuse_field(r, name, "is badly escaped or too long");
    return false;
}

static bool read_names(struct silt_http_request *r, struct silt_build_options *o)
{
    silt_slice rest = r->head->query, pair, key, name;
    struct silt_error e;
    while (rest.len > 0 && silt_slice_split(&rest, '&', &pair)) {
        if (!silt_slice_split(&pair, '=', &key) || !silt_slice_eq(key, SILT_LIT("t"))
            || pair.data == NULL)
            continue;
        char *spelled = silt_arena_alloc(r->arena, SILT_IMAGE_NAME_SIZE);
        if (spelled == NULL || o->name_count == SILT_BUILD_NAMES_MAX
            || !silt_query_decode(r, pair, &name)) {
            silt_api_refuse_field(r, "t", "is badly escaped, or there are too many");
            return false;
        }
        if (silt_reference_read(name, spelled, &e) < 0) {
            silt_api_refuse_field(r, "t", e.text);
            return false;
        }
        o->names[o->name_count++] = spelled;
    }
    return true;
}

static bool read_args(struct silt_http_request *r, struct silt_build_options *o)
{
    silt_slice raw = silt_query(r, SILT_LIT("buildargs")), text;
    const struct silt_json *object;
    struct silt_error e;
    if (raw.data == NULL || raw.len == 0)
        return true;
    if (!silt_query_decode(r, raw, &text) || silt_json_read(r->arena, text, &object, &e) < 0
        || object->type != SILT_JSON_OBJECT || object->items.count > SILT_BUILD_ARGS_MAX) {
        silt_api_refuse_field(r, "buildargs", "is no JSON object of texts");
        return false;
    }
    for (const struct silt_json *i = object->items.first; i != NULL; i = i->next) {
        if (i->type != SILT_JSON_STRING || !silt_id_is_env_name(i->key)
            || silt_slice_has_byte(i->string, 0)) {
            silt_api_refuse_field(r, "buildargs", "is no JSON object of texts");
            return false;
        }
        o->args[o->arg_count++] = (struct silt_docker_pair){i->key, i->string};
    }
    return true;
}

static bool read_labels(struct silt_http_request *r, struct silt_build_options *o)
{
    silt_slice raw = silt_query(r, SILT_LIT("labels")), text;
    const struct silt_json *object;
    struct silt_error e;
    if (raw.data == NULL || raw.len == 0)
        return true;
    bool good = silt_query_decode(r, raw, &text) && silt_json_read(r->arena, text, &object, &e) == 0
                && object->type == SILT_JSON_OBJECT && object->items.count <= SILT_BUILD_LABELS_MAX;
    for (const struct silt_json *i = good ? object->items.first : NULL; i != NULL; i = i->next) {
        good = good && i->type == SILT_JSON_STRING && i->key.len > 0
               && !silt_slice_has_byte(i->string, 0) && !silt_slice_has_byte(i->key, 0);
        if (good)
            o->labels[o->label_count++] = (struct silt_docker_pair){i->key, i->string};
    }
    if (!good)
        silt_api_refuse_field(r, "labels", "is no JSON object of at most 64 texts");
    return good;
}

static bool read_size(struct silt_http_request *r, struct silt_build_options *o)
{
    enum { INSTANCES_MAX = 1000000 };
    uint64_t count;
    struct silt_error e;
    if (!read_text(r, "type", &o->type) || !read_text(r, "max_instances", &o->max_instances))
        return false;
    if (o->type.len > 0 && silt_type_find(o->type) == NULL) {
        silt_api_refuse_field(
            r, "type",
            "must be one of lite, basic, standard-1, standard-2, standard-3, standard-4");
        return false;
    }
    if (o->max_instances.len > 0
        && silt_slice_to_u64(o->max_instances, 1, INSTANCES_MAX, &count, &e) < 0) {
        silt_api_refuse_field(r, "max_instances", "must be a number of containers");
        return false;
    }
    return true;
}

bool silt_api_build_options(struct silt_http_request *r, struct silt_build_options *o)
{
    silt_slice network = {NULL, 0}, cache = {NULL, 0};
    if (!read_text(r, "network", &network) || !read_text(r, "nocache", &cache))
        return false;
    if (network.len > 0 && !silt_slice_eq(network, SILT_LIT("public"))
        && !silt_slice_eq(network, SILT_LIT("none"))) {
        silt_api_refuse_field(r, "network", "must be public or none");
        return false;
    }
    o->network = network.len == 0                           ? SILT_NET_DEFAULT
                 : silt_slice_eq(network, SILT_LIT("none")) ? SILT_NET_NONE
                                                            : SILT_NET_PUBLIC;
    o->no_cache = silt_slice_eq(cache, SILT_LIT("1")) || silt_slice_eq(cache, SILT_LIT("true"));
    return read_text(r, "dockerfile", &o->dockerfile) && read_text(r, "target", &o->target)
           && read_names(r, o) && read_args(r, o) && read_labels(r, o) && read_size(r, o);
}

SILT_HANDLER(silt_api_image_build)
{
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    (void)args;
    struct silt_build_options *o = silt_arena_alloc(r->arena, sizeof(*o));
    struct building *g = calloc(1, sizeof(*g));
    if (o == NULL || g == NULL)
        abort();
    memset(o, 0, sizeof(*o));
    silt_buf_init(&g->last, EVENT_MAX);
    g->sink = (struct silt_build_sink){.room = on_room,
                                       .step = on_step,
                                       .output = on_output,
                                       .full = is_full,
                                       .notice = on_notice,
                                       .done = on_done,
                                       .failed = on_failed};
    silt_sse_init(&g->sse, api->loop, r);
    if (!silt_api_build_options(r, o)) {
        free_building(g);
        return;
    }
    if (silt_build_start(api->registry, o, &g->sink, &g->build, &e) < 0) {
        free_building(g);
        silt_api_refuse_error(r, &e);
        return;
    }
    if (g->over)
        g->build = NULL;
    r->owner = g;
    r->on_gone = on_gone;
    r->on_drain = on_drain;
    r->on_halved = on_halved;
    silt_http_consume(r, api->registry->settings.build_context_max + (1 << 20), on_piece);
}

SILT_HANDLER(silt_api_image_prune)
{
    silt_auto_buf b;
    (void)args;
    size_t count = silt_step_cache_clear(silt_api_of(r)->registry);
    silt_buf_init(&b, 256);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("steps"));
    silt_json_u64(&b, count);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}
