/* SPDX-License-Identifier: Apache-2.0 */
#include "api/engine/engine.h"
#include "api/ws/client.h"
#include "api/core/cors.h"
#include "base/clock.h"
#include "base/own.h"
#include "json/json.h"

#include <assert.h>
#include <stdio.h>

enum {
    BODY_MAX = 16 << 20,
    VERSION_OLDEST = 24,
    VERSION_NEWEST = 47,
    PATH_MAX_BYTES = 16 << 10,
};

/* Responses */

void silt_engine_refuse(struct silt_http_request *r, int status, const char *format, ...)
{
    char text[1024];
    silt_auto_buf b;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("message"));
    silt_json_string(&b, silt_slice_of(text));
    silt_json_close(&b, '}');
    silt_engine_answer(r, status, &b);
}

void silt_engine_refuse_error(struct silt_http_request *r, const struct silt_error *e)
{
    static const int statuses[SILT_CODE_MAX] = {
        [SILT_NOT_FOUND] = 404, [SILT_CONFLICT] = 409, [SILT_INVALID] = 400,
        [SILT_DENIED] = 400,    [SILT_LIMIT] = 400,
    };
    int status = statuses[e->code];
    silt_engine_refuse(r, status != 0 ? status : 500, "%s", e->text);
}

void silt_engine_refuse_page(struct silt_http_request *r)
{
    silt_slice method = r->head->method, path = r->head->path;
    silt_engine_refuse(r, 404,
                       "page not found: Silt serves the part of Docker's API that docs/engine.md "
                       "names, and no %.*s %.*s",
                       (int)(method.len < 16 ? method.len : 16), method.data,
                       (int)(path.len < 200 ? path.len : 200), path.data);
}

void silt_engine_answer(struct silt_http_request *r, int status, const struct silt_buf *b)
{
    silt_slice body = silt_buf_slice(b);
    if (b->broken) {
        status = 500;
        body = SILT_LIT("{\"message\":\"the answer is too large\"}");
    }
    silt_http_reply(r, status, SILT_LIT("application/json"),
                    SILT_LIT("Api-Version: " SILT_ENGINE_API "\r\n"), body);
}

void silt_engine_empty(struct silt_http_request *r, int status)
{
    silt_http_reply(r, status, (silt_slice){NULL, 0},
                    SILT_LIT("Api-Version: " SILT_ENGINE_API "\r\n"), (silt_slice){NULL, 0});
}

/* Queries */

silt_slice silt_engine_query(struct silt_http_request *r, const char *name)
{
    silt_slice raw = silt_query(r, silt_slice_of(name)), value = {NULL, 0};
    if (raw.data == NULL || !silt_query_decode(r, raw, &value))
        return (silt_slice){NULL, 0};
    return value;
}

bool silt_engine_query_bool(struct silt_http_request *r, const char *name)
{
    silt_slice v = silt_engine_query(r, name);
    return v.len > 0 && !silt_slice_eq(v, SILT_LIT("0")) && !silt_slice_ieq(v, SILT_LIT("false"));
}

static int read_filters(struct silt_http_request *r, const struct silt_json **ret,
                        struct silt_error *e)
{
    silt_slice text = silt_engine_query(r, "filters");
    *ret = NULL;
    if (text.len == 0)
        return 0;
    if (silt_json_read(r->arena, text, ret, e) < 0)
        return silt_because(e, "filters");
    if ((*ret)->type != SILT_JSON_OBJECT)
        return silt_fail(e, SILT_INVALID, "filters must be a JSON object");
    return 0;
}

bool silt_engine_take_filters(struct silt_http_request *r, const struct silt_json **ret)
{
    struct silt_error e;
    if (read_filters(r, ret, &e) == 0)
        return true;
    silt_engine_refuse_error(r, &e);
    return false;
}

static bool is_part_of(silt_slice part, silt_slice whole)
{
    return part.len == 0 || memmem(whole.data, whole.len, part.data, part.len) != NULL;
}

/* {"key":["value"]} or {"key":{"value":true}} */
bool silt_engine_passes(const struct silt_json *filters, const char *key, silt_slice value,
                        bool part)
{
    const struct silt_json *wanted = silt_json_get(filters, silt_slice_of(key));
    if (wanted == NULL || (wanted->type != SILT_JSON_ARRAY && wanted->type != SILT_JSON_OBJECT)
        || wanted->items.count == 0)
        return true;
    for (const struct silt_json *i = wanted->items.first; i != NULL; i = i->next) {
        silt_slice want = wanted->type == SILT_JSON_OBJECT ? i->key
                          : i->type == SILT_JSON_STRING    ? i->string
                                                           : SILT_LIT("\n");
        if (part ? is_part_of(want, value) : silt_slice_eq(want, value))
            return true;
    }
    return false;
}

struct silt_container *silt_engine_container(struct silt_http_request *r, silt_slice raw)
{
    silt_slice name = silt_percent_decode(r->arena, raw);
    struct silt_container *c = silt_container_find(silt_engine_of(r)->all, name);
    if (c == NULL)
        silt_engine_refuse(r, 404, "No such container: %.*s",
                           (int)(name.len < 300 ? name.len : 300), name.data);
    return c;
}

/* Requests */

/* "/v1.47/…"; false: already answered with an error. */
static bool strip_version(struct silt_http_request *r)
{
    silt_slice path = r->head->path, rest, part;
    uint64_t minor;
    struct silt_error e;
    if (!silt_slice_starts(path, SILT_LIT("/v")) || path.len < 3 || path.data[2] < '0'
        || path.data[2] > '9')
        return true;
    rest = (silt_slice){path.data + 2, path.len - 2};
    (void)silt_slice_split(&rest, '/', &part);
    silt_slice number = part, major;
    (void)silt_slice_split(&number, '.', &major);
    if (silt_slice_eq(part, SILT_LIT("1"))) /* a path of our own API */
        return true;
    if (!silt_slice_eq(major, SILT_LIT("1"))
        || silt_slice_to_u64(number, 0, 9999, &minor, &e) < 0) {
        silt_engine_refuse(r, 400, "the API version %.*s is not known",
                           (int)(part.len < 32 ? part.len : 32), part.data);
        return false;
    }
    if (minor < VERSION_OLDEST || minor > VERSION_NEWEST) {
        silt_engine_refuse(r, 400,
                           "client version 1.%u is too %s. %s supported API version is %s, please "
                           "upgrade your client",
                           (unsigned)minor, minor < VERSION_OLDEST ? "old" : "new",
                           minor < VERSION_OLDEST ? "Minimum" : "Maximum",
                           minor < VERSION_OLDEST ? SILT_ENGINE_API_MIN : SILT_ENGINE_API);
        return false;
    }
    silt_http_redirect(r, (silt_slice){part.data + part.len, path.len - 2 - part.len});
    return true;
}

/* The body of a refused request is read as well: some clients have not sent the end of an empty
 * body when we would answer. */
static void on_body(struct silt_http_request *r)
{
    struct silt_engine_call *c = r->owner;
    if (!strip_version(r))
        return;
    if (c->route != NULL)
        c->route->handle(r, c->args);
    else if (c->known)
        silt_engine_refuse(r, 405, "method not allowed");
    else
        silt_engine_refuse_page(r);
}

/* The path without its version. */
static silt_slice plain_path(silt_slice path)
{
    bool versioned = silt_slice_starts(path, SILT_LIT("/v")) && path.len > 2 && path.data[2] >= '0'
                     && path.data[2] <= '9';
    const char *slash = versioned ? memchr(path.data + 1, '/', path.len - 1) : NULL;
    return slash != NULL ? (silt_slice){slash, path.len - (size_t)(slash - path.data)} : path;
}

static void on_request(void *context, struct silt_http_request *r)
{
    struct silt_route_match match;
    silt_router_find(silt_engine_routes, silt_engine_route_count, r->head->method,
                     plain_path(r->head->path), &match);
    struct silt_engine_call *c = silt_arena_alloc(r->arena, sizeof(*c));
    assert(c != NULL);
    *c = (struct silt_engine_call){
        .engine = context, .route = match.route, .known = match.path_known};
    memcpy(c->args, match.args, sizeof(c->args));
    r->owner = c;
    if (match.route != NULL && (match.route->flags & SILT_ENGINE_STREAM) != 0)
        on_body(r);
    else
        silt_http_collect(r, BODY_MAX, on_body);
}

static void on_refusal(void *context, int status, struct silt_buf *b)
{
    (void)context;
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("message"));
    silt_json_string(b, silt_slice_of(status == 413 ? "the request is too large"
                                      : status == SILT_HTTP_INTERRUPTED
                                          ? "the daemon is restarted: try again"
                                      : status == 408 ? "the request took too long to arrive"
                                                      : "the request is not well-formed HTTP/1.1"));
    silt_json_close(b, '}');
}

/* With its WebSocket transport the npm client shows only the status line of an error. */
static silt_slice reason_of(struct silt_http_request *r, silt_slice message)
{
    char *text = silt_arena_dup(r->arena, message);
    if (text == NULL)
        return (silt_slice){NULL, 0};
    for (size_t i = 0; i < message.len; i++)
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
    return (silt_slice){text, message.len};
}

static void refuse_failed(struct silt_http_request *r, const char *words)
{
    static const char begin[] = "Container failed to start: ";
    char text[sizeof(begin) + sizeof(((struct silt_last_words *)NULL)->text)];
    (void)snprintf(text, sizeof(text), "%s%s", begin, words);
    r->reason = reason_of(r, silt_slice_of(text));
    silt_api_refuse(r, SILT_API_CONTAINER_FAILED,
                    SILT_LIT("{\"reason\":\"container_unhealthy\",\"retryable\":true}"), "%s",
                    text);
}

/* Closes WebSockets that were opened just before. Requests already begun are finished. */
static void on_failed(void *context, struct silt_container *c)
{
    silt_ws_clients_leave(((struct silt_engine *)context)->api, c, SILT_WS_FAILED,
                          silt_slice_of(silt_container_last_words(c)));
}

/* Port 3000 of a container: its sandbox's API, at the root. */
static void on_wire_request(void *context, struct silt_http_request *r)
{
    struct silt_engine *g = context;
    const struct silt_container *c = r->tag;
    silt_auto_buf b;
    silt_buf_init(&b, PATH_MAX_BYTES);
    if (c->state == SILT_CONTAINER_IS_FAILED && *silt_container_last_words(c) != 0) {
        refuse_failed(r, silt_container_last_words(c));
        return;
    }
    silt_buf_addf(&b, "/sandboxes/%s", c->sandbox);
    silt_buf_add(&b, r->head->path);
    char *path = b.broken ? NULL : silt_arena_dup(r->arena, silt_buf_slice(&b));
    if (path == NULL) {
        silt_engine_refuse(r, 414, "the path is too long");
        return;
    }
    silt_http_redirect(r, (silt_slice){path, b.len});
    silt_api_route(g->api, r);
}

static void on_answered(void *context, const struct silt_http_request *r, int status, int64_t us)
{
    struct silt_engine *g = context;
    silt_api_on_answered(g->api, r, status, us);
}

void silt_engine_init(struct silt_engine *g, struct silt_api *api, struct silt_containers *all)
{
    *g = (struct silt_engine){.api = api, .all = all};
    silt_list_init(&g->entries);
    silt_list_init(&g->doors);
    silt_list_init(&g->waits);
    silt_list_init(&g->execs);
    all->hooks = (struct silt_containers_hooks){.cut = silt_ingress_cut,
                                                .failed = on_failed,
                                                .listen = silt_ingress_listen,
                                                .unlisten = silt_ingress_unlisten,
                                                .waits = silt_engine_waits,
                                                .context = g};
}

int silt_engine_open(struct silt_engine *g, int listen_fd, const struct silt_http_limits *limits,
                     struct silt_error *e)
{
    struct silt_loop *loop = g->api->loop;
    struct silt_http_hooks hooks = {.on_request = on_request,
                                    .on_refusal = on_refusal,
                                    .on_answered = on_answered,
                                    .context = g};
    struct silt_http_hooks wire = {.on_request = on_wire_request,
                                   .on_refusal = silt_api_on_refusal,
                                   .on_answered = on_answered,
                                   .context = g,
                                   .extra_fields = silt_cors_compatible};
    struct silt_http_hooks sidecar = hooks;
    struct silt_http_limits patient = *limits;
    sidecar.on_request = silt_sidecar_on_request;
    patient.idle_timeout_ms = (int64_t)365 * 86400 * 1000; /* a healthy tunnel never times out */
    if (silt_http_server_open(loop, listen_fd, limits, &hooks, &g->server, e) < 0
        || silt_http_server_open(loop, -1, &patient, &wire, &g->wire, e) < 0
        || silt_http_server_open(loop, -1, limits, &sidecar, &g->sidecar, e) < 0)
        return -1;
    silt_ingress_open(g);
    return 0;
}

static void on_drained(void *context)
{
    (void)context; /* the API's own server decides when siltd stops */
}

void silt_engine_drain(struct silt_engine *g, int64_t deadline_ms)
{
    if (g->server == NULL)
        return;
    silt_http_server_drain(g->server, deadline_ms, on_drained, g);
    silt_http_server_drain(g->wire, deadline_ms, on_drained, g);
    silt_http_server_drain(g->sidecar, deadline_ms, on_drained, g);
}

void silt_engine_free(struct silt_engine *g)
{
    if (g->all == NULL)
        return;
    silt_engine_execs_free(g);
    silt_engine_waits_free(g);
    silt_ingress_free(g);
    silt_http_server_free(g->server);
    silt_http_server_free(g->wire);
    silt_http_server_free(g->sidecar);
}
