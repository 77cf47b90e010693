/* SPDX-License-Identifier: Apache-2.0 */
/* Translates a push to an internal request, or rejects it. */
#include "api/rpc/rpc.h"
#include "api/rpc/text.h"

#include <stdlib.h>

enum {
    CALLS_MAX = 1024, /* at once, per connection */
};

/* An error without a request. */
static void fault(struct silt_rpc_call *c, const char *name, const char *message)
{
    silt_auto_buf b;
    silt_buf_init(&b, 64 << 10);
    silt_rpc_fault(&b, name, silt_slice_of(message));
    silt_rpc_call_settle(c, false, silt_buf_slice(&b));
}

static void keep_refs(struct silt_rpc_call *c, const struct silt_rpc_refs *refs)
{
    if (refs->count == 0)
        return;
    c->refs = calloc(refs->count, sizeof(c->refs[0]));
    if (c->refs == NULL)
        abort();
    memcpy(c->refs, refs->exports, refs->count * sizeof(c->refs[0]));
    c->ref_count = refs->count;
}

/* Drops streams passed along that the method does not take. */
static void drop_pipes(struct silt_rpc *l, const struct silt_rpc_refs *refs, int64_t but)
{
    for (size_t i = 0; i < refs->pipe_count; i++) {
        struct silt_rpc_entry *e = refs->pipes[i] != but ? silt_rpc_find(l, refs->pipes[i]) : NULL;
        if (e != NULL && e->thing == SILT_RPC_UPLOAD)
            silt_rpc_upload_fail(silt_rpc_upload_of(e),
                                 SILT_LIT("[\"error\",\"Error\",\"Nobody reads this stream.\"]"));
    }
}

static bool claim(struct silt_rpc_call *c, int64_t pipe)
{
    struct silt_rpc_entry *e = silt_rpc_find(c->line, pipe);
    if (e != NULL && e->thing == SILT_RPC_UPLOAD && silt_rpc_upload_claim(silt_rpc_upload_of(e), c))
        return true;
    silt_rpc_abort(c->line, "Export %lld is not a pipe or its readable end was already consumed.",
                   (long long)pipe);
    return false;
}

/* `{"success":true,"content":["readable",…],"path":…`: the path is known now, the rest when the
 * file is open. */
static void keep_path(struct silt_rpc_call *c, silt_slice path)
{
    silt_auto_buf b;
    silt_buf_init(&b, 6 * path.len + 64);
    silt_buf_add(&b, SILT_LIT(",\"path\":"));
    silt_json_string(&b, path);
    silt_rpc_call_keep(c, silt_buf_slice(&b));
}

static void route(struct silt_rpc_call *c, const struct silt_rpc_request *q)
{
    struct silt_http_internal *inner = c->inner;
    struct silt_http_request *r = silt_http_internal_request(inner);
    struct silt_api *api = c->line->api;
    silt_slice args[SILT_ROUTE_ARGS_MAX] = {silt_slice_of(c->line->id)};
    for (size_t i = 1; i < SILT_ROUTE_ARGS_MAX; i++) {
        args[i].len = q->args[i - 1].len;
        args[i].data =
            q->args[i - 1].data != NULL ? silt_arena_dup(r->arena, q->args[i - 1]) : NULL;
    }
    args[0].data = silt_arena_dup(r->arena, args[0]);
    if (c->method->handler == NULL) {
        silt_api_route(api, r);
    } else {
        r->owner = api;
        c->method->handler(r, args);
    }
    silt_http_internal_deliver(inner);
}

static void ask(struct silt_rpc_call *c, const struct silt_rpc_request *q)
{
    struct silt_http_server *server = c->line->api->server;
    struct silt_error e;
    silt_slice head = silt_buf_slice(&q->head);
    if (q->pipe != 0 && !claim(c, q->pipe))
        return;
    c->number = q->number;
    memcpy(c->callbacks, q->callbacks, sizeof(c->callbacks));
    if (c->method->shape == SILT_RPC_RAW)
        keep_path(c, q->args[0]);
    c->inner = q->pipe != 0
                   ? silt_http_internal_new_fed(server, head, &c->sink, &e)
                   : silt_http_internal_new(server, head, silt_buf_slice(&q->body), &c->sink, &e);
    if (c->inner == NULL)
        silt_rpc_call_fail(c, "INTERNAL_ERROR", e.text);
    else
        route(c, q);
}

/* The client's list of codes has none for tunnels: with another code it would blame the transport
 * and retry. It does accept a message that is an envelope. */
static void write_envelope(struct silt_buf *b, const char *code, silt_slice message,
                           silt_slice details)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("code"));
    silt_json_string(b, silt_slice_of(code));
    silt_json_key(b, SILT_LIT("message"));
    silt_json_string(b, message);
    silt_json_key(b, SILT_LIT("context"));
    silt_buf_add(b, details);
    silt_json_close(b, '}');
}

/* Tunnels need a program that is not installed. */
static void refuse_tunnel(struct silt_rpc_call *c, const struct silt_rpc_request *q)
{
    silt_auto_buf b, details, envelope;
    bool missing =
        silt_slice_eq(silt_slice_of(c->method->fields), SILT_LIT("CLOUDFLARED_NOT_FOUND"));
    silt_slice body = silt_buf_slice(&q->body);
    silt_buf_init(&b, 16 * body.len + 4096);
    silt_buf_init(&details, body.len + 64);
    silt_buf_init(&envelope, body.len + 1024);
    silt_buf_add(&details, (silt_slice){body.data, body.len - 1});
    if (missing) {
        silt_json_key(&details, SILT_LIT("binary"));
        silt_json_string(&details, SILT_LIT("cloudflared"));
    }
    silt_buf_add_byte(&details, '}');
    write_envelope(
        &envelope, c->method->fields,
        missing ? SILT_LIT(
            "Tunnels are not available here: use exposePort, which gives the port a preview URL")
                : SILT_LIT("There is no such tunnel"),
        silt_buf_slice(&details));
    silt_rpc_error(&b, c->method->fields, silt_buf_slice(&envelope), silt_buf_slice(&details));
    silt_rpc_call_settle(c, false, silt_buf_slice(&b));
}

static void answer_fixed(struct silt_rpc_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_rpc_wrap(&b, silt_slice_of(c->method->fields));
    silt_rpc_call_settle(c, true, silt_buf_slice(&b));
}

static void refuse_limit(struct silt_rpc_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_rpc_refusal(&b, SILT_LIT("{\"code\":\"LIMIT_REACHED\",\"message\":\"Too many calls of "
                                  "this connection are not answered yet\"}"));
    silt_rpc_call_settle(c, false, silt_buf_slice(&b));
}

static void invoke(struct silt_rpc_call *c, const struct silt_rpc_invocation *v,
                   const struct silt_rpc_refs *refs)
{
    struct silt_rpc_laid own = {0};
    const struct silt_rpc_laid *laid = c->line->laid;
    if (laid == NULL) {
        silt_rpc_lay(&own, c->method, v->args, c->line->id);
        laid = &own;
    }
    const struct silt_rpc_request *q = &laid->request;
    drop_pipes(c->line, refs, laid->wrong == NULL ? q->pipe : 0);
    if (laid->wrong != NULL)
        silt_rpc_call_fail(c, "VALIDATION_FAILED", laid->wrong);
    else if (c->line->count > CALLS_MAX)
        refuse_limit(c);
    else if (c->method->shape == SILT_RPC_FIXED)
        answer_fixed(c);
    else if (c->method->shape == SILT_RPC_NO_TUNNEL)
        refuse_tunnel(c, q);
    else
        ask(c, q);
    if (laid == &own)
        silt_rpc_request_fini(&own.request);
}

/* 'commands.nope' is not a function. */
static void refuse_unknown(struct silt_rpc_call *c, const struct silt_rpc_invocation *v)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_buf_add_byte(&b, '\'');
    for (const struct silt_json *i = v->path != NULL ? v->path->items.first : NULL; i != NULL;
         i = i->next) {
        if (i != v->path->items.first)
            silt_buf_add_byte(&b, '.');
        if (i->type == SILT_JSON_STRING)
            silt_buf_add(&b, i->string);
        else
            silt_buf_addf(&b, "%lld", (long long)i->integer);
    }
    silt_buf_add(&b, SILT_LIT("' is not a function."));
    silt_buf_add_byte(&b, 0);
    fault(c, "TypeError", b.broken ? "There is no such function." : b.data);
}

static void call(struct silt_rpc *l, const struct silt_rpc_invocation *v)
{
    struct silt_rpc_refs refs = {0};
    if (v->args != NULL && !silt_rpc_args_refs(v->args, &refs)) {
        silt_rpc_abort(l, "unknown special value");
        return;
    }
    struct silt_rpc_call *c = silt_rpc_call_new(l);
    keep_refs(c, &refs);
    c->method = v->args != NULL && v->target == 0 ? silt_rpc_method_find(v->path, v->args) : NULL;
    if (c->method != NULL && !refs.foreign) {
        invoke(c, v, &refs);
        return;
    }
    drop_pipes(l, &refs, 0);
    if (refs.foreign)
        fault(c, "TypeError", "Promises, requests and other stubs are not taken as arguments.");
    else
        refuse_unknown(c, v);
}

void silt_rpc_call_push(struct silt_rpc *l, const struct silt_json *value)
{
    struct silt_rpc_invocation v;
    struct silt_rpc_refs refs;
    if (silt_rpc_is_invocation(value, &v)) {
        if (v.target == 0 || silt_rpc_find(l, v.target) != NULL)
            call(l, &v);
        else
            silt_rpc_abort(l, "no such entry on exports table: %lld", (long long)v.target);
        return;
    }
    if (!silt_rpc_refs(value, &refs)) {
        silt_rpc_abort(l, "unknown special value");
        return;
    }
    struct silt_rpc_call *c = silt_rpc_call_new(l);
    keep_refs(c, &refs);
    drop_pipes(l, &refs, 0);
    fault(c, "TypeError", "Only calls of methods can be pushed.");
}
