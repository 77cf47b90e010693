/* SPDX-License-Identifier: Apache-2.0 */
/* update: PATCH of a sandbox. The body names what changes; the rest stays as it is. Limits and
 * network take effect at once if the sandbox runs, env in new sessions and commands. */
#include "api/sandbox/network.h"
#include "api/sandbox/options.h"
#include "api/sandbox/view.h"
#include "sandbox/core/recovery.h"
#include "sandbox/core/start_frame.h"
#include "sandbox/network/network.h"

#include <stdlib.h>
#include <string.h>

struct update {
    struct silt_network_change change;
    struct silt_api *api;
    struct silt_http_request *request; /* NULL: the client has left */
    char id[SILT_ID_MAX + 1];
    struct silt_priv_limits limits;
    char type[sizeof(((struct silt_sandbox_options *)0)->type)]; /* empty: limits of its own */
    bool has_limits, has_network;
    struct silt_lifetime life;
    char *labels, *env; /* owned; NULL: unchanged */
    size_t env_len;
    enum silt_net_mode mode;
    char *allow; /* owned */
};

static void free_update(struct update *u)
{
    free(u->labels);
    free(u->env);
    free(u->allow);
    free(u);
}

static void finish(struct update *u, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_http_request *r = u->request;
    struct silt_api *api = u->api;
    bool network = u->has_network;
    free_update(u);
    if (r == NULL)
        return;
    r->on_gone = NULL;
    if (e != NULL && network)
        silt_api_network_refuse(r, e);
    else if (e != NULL)
        silt_api_refuse_error(r, e);
    else
        silt_api_show_sandbox(api, r, s, 200);
}

/* NULL: it was destroyed meanwhile, and the client has heard it. */
static struct silt_sandbox *find(struct update *u)
{
    struct silt_sandbox *s = silt_registry_find(u->api->registry, silt_slice_of(u->id));
    struct silt_error e;
    if (s != NULL && s->state != SILT_SANDBOX_DESTROYING)
        return s;
    (void)silt_fail(&e, SILT_GONE, "sandbox '%s' was destroyed", u->id);
    finish(u, NULL, &e);
    return NULL;
}

/* ---- steps: limits, row, network ---- */

static void on_network(struct silt_network_change *change, const struct silt_error *e)
{
    struct update *u = silt_outer(change, struct update, change);
    struct silt_sandbox *s = e == NULL ? find(u) : NULL;
    if (e != NULL)
        finish(u, NULL, e);
    else if (s != NULL)
        finish(u, s, NULL);
}

static void change_network(struct update *u, struct silt_sandbox *s)
{
    if (!u->has_network) {
        finish(u, s, NULL);
        return;
    }
    u->change = (struct silt_network_change){
        .mode = u->mode, .allow = silt_take_ptr(u->allow), .on_done = on_network};
    silt_network_change(s, &u->change);
}

static void swap_texts(struct update *u, struct silt_sandbox_row *row)
{
    char *labels = row->labels, *env = row->env;
    size_t env_len = row->env_len;
    if (u->labels != NULL) {
        row->labels = u->labels;
        u->labels = labels;
    }
    if (u->env != NULL) {
        row->env = u->env;
        row->env_len = u->env_len;
        u->env = env;
        u->env_len = env_len;
    }
}

/* All or nothing: on a full disk the row in memory stays as it was, too. */
static void change_row(struct update *u, struct silt_sandbox *s)
{
    struct silt_error e;
    struct silt_sandbox_row before = s->row;
    swap_texts(u, &s->row);
    silt_registry_set_lifetime(&s->row, &u->life);
    if (u->has_limits) {
        s->row.limits = u->limits;
        memcpy(s->row.type, u->type, sizeof(u->type));
    }
    if (silt_sandbox_store(s, &e) < 0) {
        swap_texts(u, &s->row);
        s->row = before;
        finish(u, NULL, &e);
        return;
    }
    if (u->env != NULL) /* the former ones */
        silt_session_env_changes(s, (silt_slice){u->env, u->env_len});
    silt_recovery_on_sandbox(s);
    silt_sandbox_rest_later(s);
    change_network(u, s);
}

static void on_limited(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct update *u = context;
    (void)fds;
    (void)nfds;
    struct silt_sandbox *s = find(u);
    if (s == NULL)
        return;
    bool ended = !a->ok && a->body.error.code == SILT_GONE; /* the next start uses the row */
    if (a->ok || ended)
        change_row(u, s);
    else
        finish(u, NULL, &a->body.error);
}

static void change_limits(struct update *u, struct silt_sandbox *s)
{
    struct silt_priv_request q = {.op = SILT_PRIV_LIMIT, .slot = s->row.slot};
    q.body.limits = u->limits;
    if (u->has_limits && silt_sandbox_is_up(s))
        silt_priv_ask(s->registry->priv, &q, NULL, 0, on_limited, u);
    else
        change_row(u, s);
}

/* ---- reading ---- */

/* Variables with a value are set, those with null removed. */
static bool read_env(struct silt_call *c, struct update *u)
{
    const struct silt_sandbox_row *row = &c->sandbox->row;
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("env"));
    silt_slice more = {NULL, 0};
    silt_auto_buf b;
    silt_buf_init(&b, SILT_SANDBOX_ENV_MAX);
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    if (!silt_body_env(c, "env", SILT_SANDBOX_ENV_MAX, &more))
        return false;
    silt_env_merge(&b, (silt_slice){row->env, row->env != NULL ? row->env_len : 0});
    for (const struct silt_json *one = v->items.first; one != NULL; one = one->next)
        if (one->type == SILT_JSON_NULL)
            silt_env_drop(&b, one->key);
    silt_env_merge(&b, more);
    if (b.broken) {
        silt_api_refuse_field(c->request, "env", "too large with the variables it has");
        return false;
    }
    u->env = malloc(b.len + 1);
    if (u->env == NULL)
        abort();
    if (b.len > 0)
        memcpy(u->env, b.data, b.len);
    u->env_len = b.len;
    return true;
}

static bool read_all(struct silt_call *c, struct update *u)
{
    const struct silt_sandbox_row *row = &c->sandbox->row;
    struct silt_sandbox_options o = {.limits = row->limits};
    struct silt_api_network network = {.mode = SILT_NET_DEFAULT};
    silt_slice labels = {NULL, 0};
    u->life = (struct silt_lifetime){.sleep_after_s = row->sleep_after_s,
                                     .stop_after_s = row->stop_after_s,
                                     .expires_ms = row->expires_ms,
                                     .keep_alive = row->keep_alive,
                                     .let_sleep = row->let_sleep,
                                     .remove_after_stop = row->remove_after_stop,
                                     .auto_snapshot = row->auto_snapshot};
    bool typed = silt_json_get(c->body, SILT_LIT("type")) != NULL; /* of a PUT */
    if ((typed && !silt_api_read_type(c, &o)) || !silt_api_read_limits(c, &o)
        || !silt_api_read_lifetime(c, &u->life)
        || !silt_api_read_labels(c, silt_slice_of(row->labels != NULL ? row->labels : ""), &labels)
        || !read_env(c, u)
        || !silt_api_network_read(c, silt_json_get(c->body, SILT_LIT("network")), "network.allow",
                                  &network))
        return false;
    u->has_limits = memcmp(&o.limits, &row->limits, sizeof(o.limits)) != 0;
    u->limits = o.limits;
    memcpy(u->type, o.type, sizeof(u->type));
    u->labels = labels.data != NULL ? strndup(labels.data, labels.len) : NULL;
    u->has_network = network.mode != SILT_NET_DEFAULT;
    u->mode = network.mode;
    u->allow =
        network.mode == SILT_NET_ALLOW ? strndup(network.allow.data, network.allow.len) : NULL;
    return true;
}

static void on_gone(struct silt_http_request *r)
{
    struct update *u = r->owner;
    u->request = NULL;
}

void silt_api_update_sandbox(struct silt_call *c)
{
    struct update *u = calloc(1, sizeof(*u));
    if (u == NULL)
        abort();
    if (!read_all(c, u)) {
        free_update(u);
        return;
    }
    u->api = c->api;
    u->request = c->request;
    memcpy(u->id, c->sandbox->row.id, sizeof(u->id));
    c->request->owner = u;
    c->request->on_gone = on_gone;
    change_limits(u, c->sandbox);
}

static const struct silt_call_kind update_call = {.body = SILT_BODY_REQUIRED,
                                                  .sandbox = SILT_CALL_LOOKS,
                                                  .native = true,
                                                  .run = silt_api_update_sandbox};

SILT_HANDLER(silt_api_sandbox_update)
{
    silt_call_begin(r, args, &update_call);
}
