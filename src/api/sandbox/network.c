/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sandboxes/{id}/network: a sandbox's network policy and its traffic counters. */
#include "api/sandbox/network.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/network/network.h"

#include <stdlib.h>

enum { ANSWER_MAX = 1 << 20 }; /* 1,024 rules and 256 denials, with room to spare */

/* One request to silt-priv and the response to the client, which may disconnect in between. */
struct visit {
    struct silt_http_request *request; /* NULL: the client has disconnected */
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
        return; /* the counters are sent all the same */
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

static void add_counters(struct silt_buf *b, const struct silt_network_counts *n)
{
    silt_json_key(b, SILT_LIT("counters"));
    if (n == NULL) {
        silt_json_null(b);
        return;
    }
    static const struct silt_egress_counts none;
    const struct silt_egress_counts *p = n->proxy != NULL ? n->proxy : &none;
    silt_json_open(b, '{');
    silt_json_add_u64(b, "sentBytes", n->link->sent_bytes);
    silt_json_add_u64(b, "sentPackets", n->link->sent_packets);
    silt_json_add_u64(b, "receivedBytes", n->link->received_bytes);
    silt_json_add_u64(b, "receivedPackets", n->link->received_packets);
    silt_json_add_u64(b, "connections", p->connections);
    silt_json_add_u64(b, "requests", p->requests);
    silt_json_add_u64(b, "dnsQuestions", p->questions);
    silt_json_add_u64(b, "refused", p->refused);
    silt_json_close(b, '}');
}

static void add_rules(struct silt_buf *b, const char *rules)
{
    silt_slice rest = silt_slice_of(rules != NULL ? rules : ""), line;
    silt_json_key(b, SILT_LIT("allow"));
    silt_json_open(b, '[');
    while (silt_slice_split(&rest, '\n', &line))
        if (line.len > 0)
            silt_json_string(b, line);
    silt_json_close(b, ']');
}

static void add_refusal(struct silt_buf *b, const struct silt_denial *r)
{
    silt_json_open(b, '{');
    silt_denial_write(b, r);
    silt_json_add_u64(b, "count", r->count);
    silt_json_key(b, SILT_LIT("firstAt"));
    silt_api_time(b, r->first_ms);
    silt_json_key(b, SILT_LIT("lastAt"));
    silt_api_time(b, r->last_ms);
    silt_json_close(b, '}');
}

/* Latest first. */
static void add_refusals(struct silt_buf *b, const struct silt_denials *l)
{
    silt_json_key(b, SILT_LIT("refused"));
    silt_json_open(b, '[');
    for (struct silt_link *it = l->list.prev; it != &l->list; it = it->prev)
        add_refusal(b, silt_outer(it, struct silt_denial, link));
    silt_json_close(b, ']');
}

/* A sandbox in the default mode reports `none` if this machine has no network for sandboxes. */
static void answer(struct silt_http_request *r, const struct silt_sandbox *s,
                   const struct silt_network_counts *n, bool available)
{
    bool nothing = !available && s->row.network == SILT_NET_DEFAULT;
    enum silt_net_mode mode = nothing ? SILT_NET_NONE : s->row.network;
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("mode"));
    silt_json_string(&b, silt_slice_of(silt_api_network_modes[mode]));
    if (mode == SILT_NET_ALLOW)
        add_rules(&b, s->row.allow);
    silt_json_key(&b, SILT_LIT("connected"));
    silt_json_bool(&b, n != NULL);
    add_counters(&b, n);
    add_refusals(&b, &s->network.refusals);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

static void on_counted(void *context, const struct silt_network_counts *n,
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

static const struct silt_call_kind get_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .run = look};

SILT_HANDLER(silt_api_network_get)
{
    silt_call_begin(r, args, &get_call);
}

static void on_changed(struct silt_network_change *change, const struct silt_error *e)
{
    struct visit *v = silt_outer(change, struct visit, change);
    struct silt_http_request *r = v->request;
    struct silt_sandbox *s = silt_registry_find(v->api->registry, silt_slice_of(v->id));
    v->changing = false;
    if (e == NULL && s != NULL) {
        silt_network_count(s, on_counted, v);
        return;
    }
    r->on_gone = NULL;
    if (e != NULL)
        silt_api_network_refuse(r, e);
    free(v);
}

static void change(struct silt_call *c)
{
    const struct silt_api_network *wanted = c->own;
    struct visit *v = visit(c);
    v->changing = true;
    v->change = (struct silt_network_change){.mode = wanted->mode, .on_done = on_changed};
    if (wanted->mode == SILT_NET_ALLOW)
        v->change.allow = strndup(wanted->allow.data, wanted->allow.len);
    silt_network_change(c->sandbox, &v->change);
}

static bool parse(struct silt_call *c)
{
    struct silt_api_network *wanted = silt_arena_alloc(c->request->arena, sizeof(*wanted));
    if (wanted == NULL)
        abort();
    *wanted = (struct silt_api_network){.mode = SILT_NET_DEFAULT};
    if (!silt_api_network_read(c, c->body, "allow", wanted))
        return false;
    c->own = wanted;
    return true;
}

static const struct silt_call_kind put_call = {.body = SILT_BODY_REQUIRED,
                                               .sandbox = SILT_CALL_LOOKS,
                                               .native = true,
                                               .parse = parse,
                                               .run = change};

SILT_HANDLER(silt_api_network_put)
{
    silt_call_begin(r, args, &put_call);
}
