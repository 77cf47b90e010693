/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sandboxes/{id}/ports: exposes services of a sandbox under URLs. */
#include "api/core/api.h"
#include "base/clock.h"
#include "sandbox/preview/preview_channel.h"
#include "sandbox/core/sandbox.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    URL_MAX = 1024,
    PORT_MAX = 65535,
    ITEM_MAX = 8192, /* a name may consist of escapes only */
    SIGN_SECONDS = 3600,
};

struct wish {
    struct silt_exposed_port_options options;
    bool locked;
    int64_t seconds; /* validity of a signed URL */
};

/* Waits until connections through the former URL are cut. Outlives the sandbox, which may be
 * removed meanwhile. */
struct visit {
    struct silt_http_request *request;
    struct silt_api *api;
    char id[SILT_ID_MAX + 1];
    uint16_t port;
    bool unexposed;
};

/* Errors */

static void refuse_port(struct silt_http_request *r, enum silt_api_code code, int64_t port,
                        const char *why)
{
    char context[64];
    (void)snprintf(context, sizeof(context), "{\"port\":%lld}", (long long)port);
    silt_api_refuse(r, code, silt_slice_of(context), "%s", why);
}

/* False: already answered with an error. */
static bool check_port(struct silt_http_request *r, int64_t port)
{
    char why[128];
    if (port >= SILT_PORT_MIN && port <= PORT_MAX && port != SILT_PORT_RESERVED)
        return true;
    if (port == SILT_PORT_RESERVED)
        (void)snprintf(why, sizeof(why),
                       "Invalid port number: %lld is reserved and cannot be exposed",
                       (long long)port);
    else
        (void)snprintf(why, sizeof(why), "Invalid port number: %lld is not between %d and %d",
                       (long long)port, SILT_PORT_MIN, PORT_MAX);
    refuse_port(r,
                port == SILT_PORT_RESERVED ? SILT_API_INVALID_PORT : SILT_API_INVALID_PORT_NUMBER,
                port, why);
    return false;
}

/* The port in the path; 0: already answered with an error. */
static uint16_t path_port(struct silt_http_request *r, silt_slice text)
{
    struct silt_error e;
    uint64_t port;
    if (silt_slice_to_u64(text, 1, PORT_MAX, &port, &e) == 0)
        return (uint16_t)port;
    silt_api_refuse(r, SILT_API_INVALID_PORT_NUMBER, (silt_slice){NULL, 0},
                    "Invalid port number: it is not between %d and %d", SILT_PORT_MIN, PORT_MAX);
    return 0;
}

static struct silt_exposed_port *need_exposed(struct silt_call *c, uint16_t port)
{
    struct silt_exposed_port *x = silt_exposed_port_find(c->sandbox, port);
    char why[64];
    (void)snprintf(why, sizeof(why), "Port %u is not exposed", port);
    if (x == NULL)
        refuse_port(c->request, SILT_API_PORT_NOT_EXPOSED, port, why);
    return x;
}

/* Responses */

static void add_url(struct silt_buf *b, const char *key, const struct silt_exposed_port *x,
                    void (*write)(const struct silt_exposed_port *, struct silt_buf *))
{
    silt_auto_buf url;
    silt_buf_init(&url, URL_MAX);
    write(x, &url);
    silt_json_key(b, silt_slice_of(key));
    silt_json_string(b, silt_buf_slice(&url));
}

static void add_entrance(struct silt_buf *b, const struct silt_exposed_port *x)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("port"));
    silt_json_u64(b, x->row.port);
    silt_json_key(b, SILT_LIT("name"));
    if (x->row.name[0] != 0)
        silt_json_string(b, silt_slice_of(x->row.name));
    else
        silt_json_null(b);
    silt_json_key(b, SILT_LIT("token"));
    silt_json_string(b, silt_slice_of(x->row.token));
    add_url(b, "url", x, silt_exposed_port_url);
    if (x->sandbox->registry->settings.preview.paths)
        add_url(b, "pathUrl", x, silt_exposed_port_path_url);
    silt_json_key(b, SILT_LIT("private"));
    silt_json_bool(b, x->row.locked);
    silt_json_close(b, '}');
}

static void answer_exposed(struct silt_http_request *r, int status,
                           const struct silt_exposed_port *x)
{
    silt_auto_buf b;
    silt_buf_init(&b, ITEM_MAX);
    add_entrance(&b, x);
    silt_api_answer(r, status, &b);
}

static void answer_unexposed(struct silt_http_request *r, uint16_t port)
{
    silt_auto_buf b;
    silt_buf_init(&b, ITEM_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("port"));
    silt_json_u64(&b, port);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

/* Waiting for the end of the former URL */

static void on_gone(struct silt_http_request *r)
{
    struct visit *v = r->owner;
    silt_preview_leave(v->api->registry->preview, v);
    free(v);
}

static void on_dropped(void *context)
{
    struct visit *v = context;
    struct silt_http_request *r = v->request;
    struct silt_sandbox *s = silt_registry_find(v->api->registry, silt_slice_of(v->id));
    const struct silt_exposed_port *x = s != NULL ? silt_exposed_port_find(s, v->port) : NULL;
    r->on_gone = NULL;
    if (v->unexposed)
        answer_unexposed(r, v->port);
    else if (x != NULL)
        answer_exposed(r, 200, x);
    else
        refuse_port(r, SILT_API_PORT_NOT_EXPOSED, v->port, "The port was unexposed meanwhile");
    free(v);
}

static void answer_when_dropped(struct silt_call *c, uint64_t former, uint16_t port, bool unexposed)
{
    struct visit *v = calloc(1, sizeof(*v));
    if (v == NULL)
        abort();
    *v = (struct visit){.request = c->request, .api = c->api, .port = port, .unexposed = unexposed};
    memcpy(v->id, c->sandbox->row.id, sizeof(v->id));
    c->request->owner = v;
    c->request->on_gone = on_gone;
    silt_preview_drop(c->api->registry->preview, former, on_dropped, v);
}

/* Expose */

static void refuse_expose(struct silt_call *c, const struct silt_error *e)
{
    const struct wish *w = c->own;
    if (e->code == SILT_INVALID)
        silt_api_refuse_field(c->request, "token", e->text);
    else if (e->code == SILT_GONE)
        silt_api_refuse(c->request, SILT_API_SANDBOX_NOT_FOUND, (silt_slice){NULL, 0},
                        "The sandbox does not exist");
    else if (e->code == SILT_CONFLICT)
        refuse_port(c->request, SILT_API_PORT_IN_USE, w->options.port, e->text);
    else
        silt_api_refuse_error(c->request, e);
}

static void expose(struct silt_call *c)
{
    const struct wish *w = c->own;
    struct silt_exposed_port *x;
    struct silt_error e;
    uint64_t former;
    if (c->api->registry->settings.preview.domain[0] == 0) {
        refuse_port(c->request, SILT_API_PORT_OPERATION, w->options.port,
                    "Previews are switched off by the setting preview.listen");
        return;
    }
    bool is_new = silt_exposed_port_find(c->sandbox, w->options.port) == NULL;
    if (silt_exposed_port_expose(c->sandbox, &w->options, &x, &former, &e) < 0)
        refuse_expose(c, &e);
    else if (former != 0)
        answer_when_dropped(c, former, w->options.port, false);
    else
        answer_exposed(c->request, is_new ? 201 : 200, x);
}

static bool read_port(struct silt_call *c, uint16_t *ret)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("port"));
    if (v == NULL || v->type != SILT_JSON_INT) {
        silt_api_refuse(c->request, SILT_API_INVALID_PORT_NUMBER, (silt_slice){NULL, 0},
                        "Invalid port number: port must be a whole number between %d and %d",
                        SILT_PORT_MIN, PORT_MAX);
        return false;
    }
    *ret = (uint16_t)v->integer;
    return check_port(c->request, v->integer);
}

static bool check_name(struct silt_call *c, silt_slice name)
{
    const char *wrong = name.len > SILT_PORT_NAME_MAX ? "is longer than 128 bytes" : NULL;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.data[i] < ' ' || name.data[i] == 0x7f)
            wrong = "holds a control character";
    if (wrong != NULL)
        silt_api_refuse_field(c->request, "name", wrong);
    return wrong == NULL;
}

static struct wish *new_wish(struct silt_call *c)
{
    struct wish *w = silt_arena_alloc(c->request->arena, sizeof(*w));
    if (w == NULL)
        abort();
    *w = (struct wish){.seconds = SIGN_SECONDS};
    return w;
}

static bool parse_expose(struct silt_call *c)
{
    struct wish *w = new_wish(c);
    const struct silt_json *locked = silt_json_get(c->body, SILT_LIT("private"));
    if (!read_port(c, &w->options.port) || !silt_body_string(c, "name", &w->options.name)
        || !check_name(c, w->options.name) || !silt_body_string(c, "token", &w->options.token)
        || !silt_body_bool(c, "private", &w->locked))
        return false;
    if (locked != NULL && locked->type == SILT_JSON_BOOL)
        w->options.locked = &w->locked;
    c->own = w;
    return true;
}

static const struct silt_call_kind expose_call = {.body = SILT_BODY_REQUIRED,
                                                  .sandbox = SILT_CALL_LOOKS,
                                                  .native = true,
                                                  .parse = parse_expose,
                                                  .run = expose};

SILT_HANDLER(silt_api_port_expose)
{
    silt_call_begin(r, args, &expose_call);
}

/* List */

static void list(struct silt_call *c)
{
    silt_auto_buf b;
    uint64_t count = 0;
    silt_buf_init(&b, SILT_EXPOSED_PORTS_MAX * ITEM_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("ports"));
    silt_json_open(&b, '[');
    silt_list_each(it, &c->sandbox->entrances)
    {
        const struct silt_exposed_port *x = silt_outer(it, struct silt_exposed_port, link);
        if (x->row.token[0] == 0)
            continue; /* not exposed */
        add_entrance(&b, x);
        count++;
    }
    silt_json_close(&b, ']');
    silt_json_key(&b, SILT_LIT("count"));
    silt_json_u64(&b, count);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static const struct silt_call_kind list_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .run = list};

SILT_HANDLER(silt_api_port_list)
{
    silt_call_begin(r, args, &list_call);
}

/* Show */

static void show(struct silt_call *c)
{
    uint16_t port = path_port(c->request, c->arg);
    const struct silt_exposed_port *x = port != 0 ? need_exposed(c, port) : NULL;
    if (x != NULL)
        answer_exposed(c->request, 200, x);
}

static const struct silt_call_kind show_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .run = show};

SILT_HANDLER(silt_api_port_get)
{
    silt_call_begin(r, args, &show_call);
}

/* Unexpose */

static void unexpose(struct silt_call *c)
{
    uint16_t port = path_port(c->request, c->arg);
    struct silt_exposed_port *x = port != 0 ? need_exposed(c, port) : NULL;
    struct silt_error e;
    uint64_t former;
    if (x == NULL)
        return;
    if (silt_exposed_port_unexpose(x, &former, &e) < 0)
        silt_api_refuse_error(c->request, &e);
    else if (former != 0)
        answer_when_dropped(c, former, port, true);
    else
        answer_unexposed(c->request, port);
}

static const struct silt_call_kind unexpose_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .run = unexpose};

SILT_HANDLER(silt_api_port_unexpose)
{
    silt_call_begin(r, args, &unexpose_call);
}

/* Signed URLs */

static void sign(struct silt_call *c)
{
    const struct wish *w = c->own;
    uint16_t port = path_port(c->request, c->arg);
    const struct silt_exposed_port *x = port != 0 ? need_exposed(c, port) : NULL;
    int64_t until_s = silt_clock_wall_ms() / 1000 + w->seconds;
    silt_auto_buf b = {0}, url = {0};
    if (x == NULL)
        return;
    silt_buf_init(&url, URL_MAX);
    silt_buf_init(&b, ITEM_MAX);
    silt_exposed_port_signed_url(x, until_s, &url);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("url"));
    silt_json_string(&b, silt_buf_slice(&url));
    silt_json_key(&b, SILT_LIT("expiresAt"));
    silt_api_time(&b, until_s * 1000);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static bool parse_sign(struct silt_call *c)
{
    struct wish *w = new_wish(c);
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("expiresIn"));
    bool given = v != NULL && v->type != SILT_JSON_NULL;
    if (given
        && (v->type != SILT_JSON_INT || v->integer < 1
            || v->integer > SILT_SIGNED_URL_SECONDS_MAX)) {
        silt_api_refuse_field(c->request, "expiresIn",
                              "must be a whole number of seconds, 1 to 2592000");
        return false;
    }
    if (given)
        w->seconds = v->integer;
    c->own = w;
    return true;
}

static const struct silt_call_kind sign_call = {.body = SILT_BODY_OPTIONAL,
                                                .sandbox = SILT_CALL_LOOKS,
                                                .native = true,
                                                .parse = parse_sign,
                                                .run = sign};

SILT_HANDLER(silt_api_port_sign)
{
    silt_call_begin(r, args, &sign_call);
}
