/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sandboxes/{id}/network: what a sandbox may reach, and how much it did. */
#include "api/network.h"
#include "sandbox/sandbox.h"

#include <stdlib.h>

enum { ANSWER_MAX = 4096 };

static const char *const names[SILT_NET_MODE_MAX] = {
    [SILT_NET_DEFAULT] = "public",
    [SILT_NET_NONE] = "none",
    [SILT_NET_PUBLIC] = "public",
};

bool silt_api_network_read(struct silt_call *c, const struct silt_json *object,
                           enum silt_net_mode *ret)
{
    if (object == NULL || object->type == SILT_JSON_NULL)
        return true;
    const struct silt_json *mode =
        object->type == SILT_JSON_OBJECT ? silt_json_get(object, SILT_LIT("mode")) : NULL;
    if (mode != NULL && mode->type == SILT_JSON_STRING)
        for (int i = SILT_NET_NONE; i < SILT_NET_MODE_MAX; i++)
            if (names[i] != NULL && silt_slice_eq(mode->string, silt_slice_of(names[i]))) {
                *ret = (enum silt_net_mode)i;
                return true;
            }
    silt_api_refuse_field(c->request, "mode", "must be one of none, public");
    return false;
}

/* One question to silt-priv and the answer to the client, who may leave in between. */
struct visit {
    struct silt_http_request *request; /* NULL: the client left */
    struct silt_api *api;
    struct silt_network_change change; /* PUT */
    bool changing;
    char id[SILT_ID_MAX + 1];
};

static void on_gone(struct silt_http_request *r)
{
    struct visit *v = r->owner;
    v->request = NULL;
    if (!v->changing)
        return; /* the counters come all the same */
    silt_network_leave(&v->change);
    free(v);
}

static struct visit *visit(struct silt_call *c)
{
    struct visit *v = calloc(1, sizeof(*v));
    if (v == NULL)
        abort();
    v->request = c->request;
    v->api = c->api;
    memcpy(v->id, c->sandbox->row.id, sizeof(v->id));
    c->request->owner = v;
    c->request->on_gone = on_gone;
    return v;
}

static void add_counter(struct silt_buf *b, const char *key, uint64_t n)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_u64(b, n);
}

static void add_counters(struct silt_buf *b, const struct silt_priv_netstat *n)
{
    silt_json_key(b, SILT_LIT("counters"));
    if (n == NULL) {
        silt_json_null(b);
        return;
    }
    silt_json_open(b, '{');
    add_counter(b, "sentBytes", n->sent_bytes);
    add_counter(b, "sentPackets", n->sent_packets);
    add_counter(b, "receivedBytes", n->received_bytes);
    add_counter(b, "receivedPackets", n->received_packets);
    silt_json_close(b, '}');
}

/* A sandbox that nobody chose a mode for has what there is. */
static void answer(struct silt_http_request *r, const struct silt_sandbox *s,
                   const struct silt_priv_netstat *n, bool available)
{
    bool nothing = !available && s->row.network == SILT_NET_DEFAULT;
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("mode"));
    silt_json_string(&b, silt_slice_of(names[nothing ? SILT_NET_NONE : s->row.network]));
    silt_json_key(&b, SILT_LIT("connected"));
    silt_json_bool(&b, n != NULL);
    add_counters(&b, n);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

static void on_counted(void *context, const struct silt_priv_netstat *n,
                       const struct silt_error *failure)
{
    struct visit *v = context;
    struct silt_http_request *r = v->request;
    struct silt_sandbox *s = silt_registry_find(v->api->registry, silt_slice_of(v->id));
    struct silt_error gone;
    (void)silt_fail(&gone, SILT_GONE, "the sandbox was destroyed");
    free(v);
    if (r == NULL)
        return;
    r->on_gone = NULL;
    if (s == NULL)
        silt_api_refuse_error(r, &gone);
    else if (failure != NULL && failure->code != SILT_UNAVAILABLE)
        silt_api_refuse_error(r, failure);
    else
        answer(r, s, n, failure == NULL);
}

static void look(struct silt_call *c)
{
    silt_network_count(c->sandbox, on_counted, visit(c));
}

SILT_HANDLER(silt_api_network_get)
{
    struct silt_call *c = silt_call_new(r, args[0]);
    if (c != NULL)
        silt_call_look_known(c, look);
}

static void on_changed(struct silt_network_change *change, const struct silt_error *e)
{
    struct visit *v = silt_container_of(change, struct visit, change);
    struct silt_http_request *r = v->request;
    struct silt_sandbox *s = silt_registry_find(v->api->registry, silt_slice_of(v->id));
    v->changing = false;
    if (e == NULL && s != NULL) {
        silt_network_count(s, on_counted, v);
        return;
    }
    r->on_gone = NULL;
    if (e != NULL && e->code == SILT_UNAVAILABLE)
        silt_api_refuse(r, SILT_API_NETWORK_UNAVAILABLE, (silt_slice){NULL, 0},
                        "This machine has no network for sandboxes");
    else if (e != NULL)
        silt_api_refuse_error(r, e);
    free(v);
}

static void change(struct silt_call *c)
{
    enum silt_net_mode mode = *(const enum silt_net_mode *)c->own;
    struct visit *v = visit(c);
    v->changing = true;
    v->change = (struct silt_network_change){.mode = mode, .on_done = on_changed};
    silt_network_change(c->sandbox, &v->change);
}

static void parse(struct silt_call *c)
{
    enum silt_net_mode *mode = silt_arena_alloc(c->request->arena, sizeof(*mode));
    if (mode == NULL)
        abort();
    *mode = SILT_NET_DEFAULT;
    if (!silt_api_network_read(c, c->body, mode))
        return;
    c->own = mode;
    silt_call_look_known(c, change);
}

SILT_HANDLER(silt_api_network_put)
{
    struct silt_call *c = silt_call_new(r, args[0]);
    if (c == NULL)
        return;
    c->parsed = parse;
    silt_call_read(c, false);
}
