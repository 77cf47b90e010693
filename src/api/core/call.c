/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/api.h"
#include "api/core/strict.h"
#include "base/id.h"
#include "sandbox/core/sandbox.h"

#include <assert.h>

static void walk(struct silt_call *c, enum silt_call_step step);

/* The tree leaves a part of the request's memory free: what a handler puts there has room, whatever
 * was sent. */
static int read_json(struct silt_http_request *r, const struct silt_json **ret,
                     struct silt_error *e)
{
    enum { SPARE = 1 << 20 };
    r->arena->max -= SPARE;
    int answer = silt_json_read(r->arena, r->body, ret, e);
    r->arena->max += SPARE;
    return answer;
}

static void on_body(struct silt_http_request *r)
{
    struct silt_call *c = r->owner;
    struct silt_error e;
    if (c->kind->body == SILT_BODY_OPTIONAL && r->body.len == 0)
        walk(c, SILT_CALL_PARSING);
    else if (read_json(r, &c->body, &e) < 0)
        silt_api_refuse(r,
                        e.code == SILT_LIMIT ? SILT_API_BODY_TOO_LARGE : SILT_API_VALIDATION_FAILED,
                        (silt_slice){NULL, 0}, "Failed to parse request body: %s", e.text);
    else if (c->body->type != SILT_JSON_OBJECT)
        silt_api_refuse(r, SILT_API_VALIDATION_FAILED, (silt_slice){NULL, 0},
                        "Failed to parse request body: it must be a JSON object");
    else if (!silt_api_is_native(r)
             || silt_strict_body(r, silt_strict_operation(r->route), c->body))
        walk(c, SILT_CALL_PARSING);
}

static bool read_body(struct silt_call *c)
{
    if (c->kind->body == SILT_BODY_NONE)
        return true;
    silt_http_collect(c->request, SILT_BODY_MAX, on_body);
    return false;
}

static bool parse(struct silt_call *c)
{
    return c->kind->parse == NULL || c->kind->parse(c);
}

static void refuse_unknown(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("sandboxId"));
    silt_json_string(&b, c->id);
    silt_json_close(&b, '}');
    silt_api_refuse(c->request, SILT_API_SANDBOX_NOT_FOUND, silt_buf_slice(&b),
                    "Sandbox '%.*s' does not exist", (int)c->id.len, c->id.data);
}

static bool find_sandbox(struct silt_call *c)
{
    if (c->kind->sandbox == SILT_CALL_NO_SANDBOX)
        return true;
    c->sandbox = silt_registry_find(c->api->registry, c->id);
    if (c->sandbox != NULL || !c->kind->native)
        return true;
    if (!silt_query_flag(c->request, "create", &c->creates))
        return false;
    if (!c->creates)
        refuse_unknown(c);
    return c->creates;
}

static void on_ready(struct silt_waiter *w, struct silt_sandbox *sandbox,
                     const struct silt_error *e)
{
    struct silt_call *c = silt_outer(w, struct silt_call, waiter);
    if (sandbox == NULL) {
        silt_api_refuse_error(c->request, e);
        return;
    }
    c->sandbox = sandbox;
    silt_sandbox_hold(sandbox); /* it was used now: its idle time begins anew */
    silt_sandbox_release(sandbox);
    walk(c, SILT_CALL_CHOOSING);
}

/* A sandbox that starts is waited for in any case: one of a former siltd is about to tell what runs
 * in it. */
static bool wake_sandbox(struct silt_call *c)
{
    bool starts = c->sandbox != NULL && c->sandbox->state == SILT_SANDBOX_STARTING;
    if (c->kind->sandbox != SILT_CALL_WAKES && !starts && !c->creates)
        return true;
    c->waiter.on_ready = on_ready;
    silt_registry_use(c->api->registry, c->id, &c->waiter);
    return false;
}

static bool choose(struct silt_call *c)
{
    return c->kind->choose == NULL || c->kind->choose(c);
}

static bool run(struct silt_call *c)
{
    c->kind->run(c);
    return false;
}

static bool (*const steps[])(struct silt_call *c) = {
    [SILT_CALL_READING] = read_body,    [SILT_CALL_PARSING] = parse,
    [SILT_CALL_FINDING] = find_sandbox, [SILT_CALL_WAKING] = wake_sandbox,
    [SILT_CALL_CHOOSING] = choose,      [SILT_CALL_RUNNING] = run,
};

/* The only place that assigns the step. A step that returns false may have ended the request, and
 * the call with it. */
static void walk(struct silt_call *c, enum silt_call_step step)
{
    for (c->step = step; steps[c->step](c);)
        c->step++;
}

void silt_call_go(struct silt_call *c)
{
    walk(c, c->step);
}

static void on_gone(struct silt_http_request *r)
{
    struct silt_call *c = r->owner;
    silt_waiter_leave(&c->waiter);
}

struct silt_call *silt_call_new(struct silt_http_request *r,
                                const silt_slice args[SILT_ROUTE_ARGS_MAX],
                                const struct silt_call_kind *kind)
{
    struct silt_error e;
    if (args[0].data != NULL && silt_id_check(args[0], &e) < 0) {
        silt_api_refuse_field(r, "id", e.text);
        return NULL;
    }
    struct silt_call *c = silt_arena_alloc(r->arena, sizeof(*c));
    assert(c != NULL);
    *c = (struct silt_call){
        .kind = kind,
        .request = r,
        .api = silt_api_of(r),
        .id = args[0],
        .arg = args[1],
        .arg2 = args[2],
    };
    silt_list_init(&c->waiter.link);
    r->owner = c;
    r->on_gone = on_gone;
    return c;
}

void silt_call_begin(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX],
                     const struct silt_call_kind *kind)
{
    struct silt_call *c = silt_call_new(r, args, kind);
    if (c != NULL)
        silt_call_go(c);
}
