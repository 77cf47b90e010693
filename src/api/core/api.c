/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/api.h"
#include "api/core/cors.h"
#include "api/core/login.h"
#include "api/core/signature.h"
#include "api/core/strict.h"
#include "api/core/unknown_route.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>

enum { LOG_FLUSH_MS = 50 };

/* Who may come in. */

static bool has_token(const struct silt_api *api, const struct silt_http_request *r)
{
    size_t fields = 0;
    for (size_t i = 0; i < r->head->count; i++)
        fields += silt_slice_ieq(r->head->fields[i].name, SILT_LIT("authorization"));
    if (fields != 1)
        return false;
    silt_slice value = silt_http_field(r->head, SILT_LIT("authorization"));
    silt_slice scheme;
    if (!silt_slice_split(&value, ' ', &scheme) || !silt_slice_ieq(scheme, SILT_LIT("bearer")))
        return false;
    return silt_slice_eq_secret(silt_slice_trim(value), api->token);
}

/* Another page can make a browser open a WebSocket, cookie and all; it cannot lie about where it
 * comes from. */
static bool has_login(const struct silt_api *api, const struct silt_http_request *r)
{
    return silt_http_is_own(r->head) && silt_login_has(api, r);
}

static void refuse_method(struct silt_http_request *r, const char *allow)
{
    char message[128], fields[96];
    silt_auto_buf b;
    (void)snprintf(message, sizeof(message), "This path answers %s only", allow);
    (void)snprintf(fields, sizeof(fields), "Allow: %s\r\n", allow);
    silt_buf_init(&b, 4096);
    silt_api_envelope(&b, SILT_API_METHOD_NOT_ALLOWED, silt_slice_of(message));
    silt_json_raw(&b, SILT_LIT("{}"));
    silt_api_envelope_end(&b, SILT_API_METHOD_NOT_ALLOWED);
    silt_http_reply(r, 405, SILT_LIT("application/json"), silt_slice_of(fields),
                    silt_buf_slice(&b));
}

static void go(struct silt_api *api, struct silt_http_request *r,
               const struct silt_route_match *match)
{
    if (match->route != NULL) {
        r->owner = api;
        r->route = match->route;
        if (silt_api_is_native(r) && !silt_strict_query(r, silt_strict_operation(match->route)))
            return;
        if ((match->route->flags & SILT_ROUTE_KEYED) == 0 || !silt_idempotency_take(api, r))
            match->route->handle(r, match->args);
    } else if (match->path_known) {
        refuse_method(r, match->allow);
    } else {
        silt_api_refuse_route(r, silt_routes, silt_route_count);
    }
}

void silt_api_on_request(void *context, struct silt_http_request *r)
{
    struct silt_api *api = context;
    struct silt_route_match match;
    silt_cors_allow(r, api->cors_origins, silt_api_is_native(r));
    if (silt_slice_eq(r->head->method, SILT_LIT("OPTIONS"))) {
        silt_http_reply(r, 204, (silt_slice){NULL, 0}, (silt_slice){NULL, 0},
                        (silt_slice){NULL, 0});
        return;
    }
    silt_router_find(silt_routes, silt_route_count, r->head->method, r->head->path, &match);
    unsigned flags = match.route != NULL ? match.route->flags : 0;
    if ((flags & SILT_ROUTE_OPEN) == 0 && !has_token(api, r)
        && ((flags & SILT_ROUTE_LOGIN) == 0 || !has_login(api, r))
        && (!silt_api_is_native(r) || !silt_cors_has_token(r, api->token))
        && ((flags & SILT_ROUTE_SIGNED) == 0 || !silt_signature_has(api, r, match.args[0]))) {
        silt_api_refuse(r, SILT_API_UNAUTHORIZED, (silt_slice){NULL, 0},
                        "The request has no valid API token");
        return;
    }
    go(api, r, &match);
}

void silt_api_route(struct silt_api *api, struct silt_http_request *r)
{
    struct silt_route_match match;
    silt_router_find(silt_routes, silt_route_count, r->head->method, r->head->path, &match);
    go(api, r, &match);
}

void silt_api_on_refusal(void *context, int status, struct silt_buf *b)
{
    (void)context;
    const char *message = status == 413   ? "The request body is too large"
                          : status == 408 ? "The request took too long to arrive"
                          : status == 414 ? "The request target is too long"
                          : status == 431 ? "The request head is too large"
                          : status == SILT_HTTP_INTERRUPTED
                              ? "The daemon is restarted: look, then try again"
                          : status == 503 ? "Too many request bodies are in memory now; try again"
                                          : "The request is not well-formed HTTP/1.1";
    const char *code = status == 413                     ? "BODY_TOO_LARGE"
                       : status == SILT_HTTP_INTERRUPTED ? "OPERATION_INTERRUPTED"
                       : status == 503                   ? "LIMIT_REACHED"
                                                         : "VALIDATION_FAILED";
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("code"));
    silt_json_string(b, silt_slice_of(code));
    silt_json_key(b, SILT_LIT("message"));
    silt_json_string(b, silt_slice_of(message));
    silt_json_key(b, SILT_LIT("context"));
    silt_json_raw(b, SILT_LIT("{}"));
    silt_json_key(b, SILT_LIT("httpStatus"));
    silt_json_i64(b, status);
    silt_api_timestamp(b);
    silt_json_close(b, '}');
}

static void on_log_flush(struct silt_timer *t)
{
    (void)t;
    silt_log_flush();
}

void silt_api_init(struct silt_api *api)
{
    api->started_ms = silt_clock_ms();
    api->log_flush = (struct silt_timer){.on_time = on_log_flush};
    silt_list_init(&api->watchings);
    silt_list_init(&api->followers);
    silt_list_init(&api->guests);
    silt_idempotency_init(&api->idempotency);
    silt_log_gather();
}

void silt_api_on_answered(void *context, const struct silt_http_request *r, int status, int64_t us)
{
    struct silt_api *api = context;
    api->answered[status >= 100 && status < 600 ? status / 100 : 0]++;
    api->answer_us += (uint64_t)(us > 0 ? us : 0);
    if (!silt_log_wants(SILT_LOG_DEBUG) || r == NULL || r->head == NULL)
        return;
    char method[SILT_LOG_QUOTE_SIZE], path[SILT_LOG_QUOTE_SIZE];
    silt_log(SILT_LOG_DEBUG, "http", "method=%s path=%s status=%d us=%lld",
             silt_log_quote(r->head->method, method), silt_log_quote(r->head->path, path), status,
             (long long)us);
    if (api->log_flush.place == 0 && silt_log_waiting())
        silt_loop_after(api->loop, &api->log_flush, LOG_FLUSH_MS);
}

/* Fields. */

static const struct silt_json *field(struct silt_call *c, const char *name)
{
    const struct silt_json *v = silt_json_get(c->body, silt_slice_of(name));
    return v != NULL && v->type != SILT_JSON_NULL ? v : NULL;
}

bool silt_body_string(struct silt_call *c, const char *name, silt_slice *ret)
{
    const struct silt_json *v = field(c, name);
    if (v == NULL)
        return true;
    if (v->type != SILT_JSON_STRING) {
        silt_api_refuse_field(c->request, name, "must be a string");
        return false;
    }
    if (silt_slice_has_byte(v->string, 0)) {
        silt_api_refuse_field(c->request, name, "must not hold a NUL character");
        return false;
    }
    *ret = v->string;
    return true;
}

bool silt_body_bool(struct silt_call *c, const char *name, bool *ret)
{
    const struct silt_json *v = field(c, name);
    if (v == NULL)
        return true;
    if (v->type != SILT_JSON_BOOL) {
        silt_api_refuse_field(c->request, name, "must be true or false");
        return false;
    }
    *ret = v->boolean;
    return true;
}

bool silt_body_ms(struct silt_call *c, const char *name, uint32_t *ret)
{
    enum { MOST = 2147483647 };
    const struct silt_json *v = field(c, name);
    if (v == NULL)
        return true;
    double ms = v->type == SILT_JSON_INT      ? (double)v->integer
                : v->type == SILT_JSON_DOUBLE ? v->number
                                              : -1;
    if (!(ms >= 0)) {
        silt_api_refuse_field(c->request, name, "must be a number of milliseconds, 0 or more");
        return false;
    }
    *ret = ms >= MOST ? MOST : ms > 0 && ms < 1 ? 1 : (uint32_t)ms;
    return true;
}

static bool add_variable(struct silt_call *c, const char *name, struct silt_buf *b,
                         const struct silt_json *v)
{
    if (v->type == SILT_JSON_NULL)
        return true;
    const char *wrong = !silt_id_is_env_name(v->key)
                            ? "has a name that is not [A-Za-z_][A-Za-z0-9_]*"
                        : v->type != SILT_JSON_STRING       ? "has a value that is not a string"
                        : silt_slice_has_byte(v->string, 0) ? "has a value with a NUL character"
                                                            : NULL;
    if (wrong != NULL) {
        silt_api_refuse_field(c->request, name, wrong);
        return false;
    }
    silt_buf_add(b, v->key);
    silt_buf_add_byte(b, '=');
    silt_buf_add(b, v->string);
    silt_buf_add_byte(b, 0);
    return true;
}

bool silt_body_env(struct silt_call *c, const char *name, size_t max, silt_slice *ret)
{
    const struct silt_json *v = field(c, name);
    if (v == NULL)
        return true;
    if (v->type != SILT_JSON_OBJECT) {
        silt_api_refuse_field(c->request, name, "must be an object of strings");
        return false;
    }
    silt_auto_buf b;
    silt_buf_init(&b, max);
    for (const struct silt_json *item = v->items.first; item != NULL; item = item->next)
        if (!add_variable(c, name, &b, item))
            return false;
    bool fits = !b.broken && v->items.count <= SILT_ENV_COUNT_MAX;
    char *copy = fits ? silt_arena_dup(c->request->arena, silt_buf_slice(&b)) : NULL;
    if (copy == NULL) {
        char why[96];
        (void)snprintf(why, sizeof(why), "is more than %zu bytes or more than %d variables", max,
                       SILT_ENV_COUNT_MAX);
        silt_api_refuse_field(c->request, name, why);
        return false;
    }
    *ret = (silt_slice){copy, b.len};
    return true;
}

bool silt_is_blank(silt_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!silt_is_any(s.data[i], " \t\r\n\f\v"))
            return false;
    return true;
}

silt_slice silt_trim_blank(silt_slice s)
{
    while (s.len > 0 && silt_is_blank((silt_slice){s.data, 1}))
        s = (silt_slice){s.data + 1, s.len - 1};
    while (s.len > 0 && silt_is_blank((silt_slice){s.data + s.len - 1, 1}))
        s.len--;
    return s;
}

bool silt_query_decode(struct silt_http_request *r, silt_slice raw, silt_slice *ret)
{
    char *out = silt_arena_dup(r->arena, raw);
    size_t n = 0;
    while (out != NULL && raw.len > 0) {
        bool is_space = raw.data[0] == '+';
        int c = silt_slice_unescape(&raw);
        if (c < 0)
            return false;
        out[n++] = is_space ? ' ' : (char)c;
    }
    *ret = (silt_slice){out, n};
    return out != NULL;
}

silt_slice silt_query(const struct silt_http_request *r, silt_slice name)
{
    silt_slice rest = r->head->query, pair, key;
    if (rest.len == 0)
        return (silt_slice){NULL, 0};
    while (silt_slice_split(&rest, '&', &pair))
        if (silt_slice_split(&pair, '=', &key) && silt_slice_eq(key, name))
            return pair.data != NULL ? pair : (silt_slice){"", 0};
    return (silt_slice){NULL, 0};
}

bool silt_query_flag(struct silt_http_request *r, const char *name, bool *ret)
{
    silt_slice v = silt_query(r, silt_slice_of(name));
    bool is_true = silt_slice_eq(v, SILT_LIT("true")) || silt_slice_eq(v, SILT_LIT("1"));
    bool is_false = silt_slice_eq(v, SILT_LIT("false")) || silt_slice_eq(v, SILT_LIT("0"));
    if (v.data == NULL)
        return true;
    if (!is_true && !is_false) {
        silt_api_refuse_field(r, name, "must be true or false");
        return false;
    }
    *ret = is_true;
    return true;
}
