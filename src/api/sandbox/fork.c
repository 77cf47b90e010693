/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/sandboxes/{id}/fork, and `from` of POST /v1/sandboxes. What the body does not name is as
 * it is in the source. */
#include "api/sandbox/fork.h"
#include "api/sandbox/network.h"
#include "api/sandbox/options.h"
#include "api/sandbox/view.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/start_frame.h"
#include "sandbox/image/fork.h"
#include "sandbox/image/snapshot.h"
#include "store/recovery.h"

#include <stdio.h>
#include <stdlib.h>

enum { ANSWER_MAX = 16 << 20 };

/*   FORKING --done--> (answer), or with `starts` STARTING --runs--> (answer) */
struct forking {
    struct silt_waiter waiter; /* STARTING */
    struct silt_api *api;
    struct silt_http_request *request; /* NULL: the client has left; the sandboxes are made */
    bool starts;                       /* one sandbox, answered when it runs */
    bool networked;                    /* the body chooses a network */
    size_t count;
    char ids[SILT_FORKS_MAX][SILT_ID_MAX + 1];
};

static void on_gone(struct silt_http_request *r)
{
    struct forking *f = r->owner;
    f->request = NULL;
}

/* ---- what the body says ---- */

static bool read_env(struct silt_call *c, const struct silt_sandbox_row *from,
                     struct silt_sandbox_row *ret)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("env"));
    silt_slice more = {NULL, 0};
    silt_auto_buf b;
    silt_buf_init(&b, SILT_SANDBOX_ENV_MAX);
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    if (!silt_body_env(c, "env", SILT_SANDBOX_ENV_MAX, &more))
        return false;
    silt_env_merge(&b, (silt_slice){from->env, from->env != NULL ? from->env_len : 0});
    for (const struct silt_json *one = v->items.first; one != NULL; one = one->next)
        if (one->type == SILT_JSON_NULL)
            silt_env_drop(&b, one->key);
    silt_env_merge(&b, more);
    if (b.broken) {
        silt_api_refuse_field(c->request, "env", "too large with the variables of the source");
        return false;
    }
    ret->env = silt_arena_dup(c->request->arena, silt_buf_slice(&b));
    ret->env_len = ret->env != NULL ? b.len : 0;
    return true;
}

static bool read_texts(struct silt_call *c, const struct silt_sandbox_row *from,
                       struct silt_sandbox_row *ret, bool *ret_networked)
{
    struct silt_api_network network = {.mode = SILT_NET_DEFAULT};
    silt_slice labels = {NULL, 0};
    if (!silt_api_read_labels(c, silt_slice_of(from->labels != NULL ? from->labels : ""), &labels)
        || !silt_api_network_read(c, silt_json_get(c->body, SILT_LIT("network")), "network.allow",
                                  &network)
        || !read_env(c, from, ret))
        return false;
    if (labels.data != NULL)
        ret->labels = silt_arena_dup(c->request->arena, labels);
    *ret_networked = network.mode != SILT_NET_DEFAULT;
    if (!*ret_networked)
        return true;
    ret->network = network.mode;
    ret->allow = network.mode == SILT_NET_ALLOW ? silt_arena_dup(
                     c->request->arena, network.allow.data != NULL ? network.allow : SILT_LIT(""))
                                                : NULL;
    return true;
}

/* `ret` borrows from `from` and from the request's arena. */
static bool read_choices(struct silt_call *c, const struct silt_sandbox_row *from,
                         struct silt_sandbox_row *ret, bool *ret_networked)
{
    struct silt_sandbox_options o = {.limits = from->limits,
                                     .life = {.sleep_after_s = from->sleep_after_s,
                                              .stop_after_s = from->stop_after_s,
                                              .keep_alive = from->keep_alive,
                                              .let_sleep = from->let_sleep,
                                              .auto_snapshot = from->auto_snapshot}};
    const struct silt_json *type = silt_json_get(c->body, SILT_LIT("type"));
    *ret = *from;
    memcpy(o.type, from->type, sizeof(o.type));
    if ((type != NULL && type->type != SILT_JSON_NULL && !silt_api_read_type(c, &o))
        || !silt_api_read_limits(c, &o) || !silt_api_read_lifetime(c, &o.life)
        || !silt_body_bool(c, "ephemeral", &ret->ephemeral)
        || !read_texts(c, from, ret, ret_networked))
        return false;
    memcpy(ret->type, o.type, sizeof(ret->type));
    ret->limits = o.limits;
    silt_registry_set_lifetime(ret, &o.life);
    return true;
}

static bool add_id(struct silt_call *c, struct forking *f, silt_slice id)
{
    struct silt_error e;
    if (silt_id_check(id, &e) < 0) {
        silt_api_refuse_field(c->request, "ids", e.text);
        return false;
    }
    for (size_t i = 0; i < f->count; i++)
        if (silt_slice_eq(silt_slice_of(f->ids[i]), id)) {
            silt_api_refuse_field(c->request, "ids", "must all be different");
            return false;
        }
    memcpy(f->ids[f->count], id.data, id.len);
    f->ids[f->count++][id.len] = 0;
    return true;
}

static bool refuse_number(struct silt_call *c)
{
    silt_api_refuse_field(c->request, "count",
                          "give either count, 1 to 100, or ids, a list of 1 to 100 ids");
    return false;
}

static bool count_ids(struct silt_call *c, struct forking *f, const struct silt_json *count)
{
    char id[SILT_ID_MAX + 24];
    if (count->type != SILT_JSON_INT || count->integer < 1 || count->integer > SILT_FORKS_MAX)
        return refuse_number(c);
    for (int64_t i = 1; i <= count->integer; i++) {
        (void)snprintf(id, sizeof(id), "%.*s-%lld", (int)c->id.len, c->id.data, (long long)i);
        if (!add_id(c, f, silt_slice_of(id)))
            return false;
    }
    return true;
}

static bool read_ids(struct silt_call *c, struct forking *f)
{
    const struct silt_json *ids = silt_json_get(c->body, SILT_LIT("ids"));
    const struct silt_json *count = silt_json_get(c->body, SILT_LIT("count"));
    if ((ids == NULL) == (count == NULL))
        return refuse_number(c);
    if (count != NULL)
        return count_ids(c, f, count);
    if (ids->type != SILT_JSON_ARRAY || ids->items.count < 1 || ids->items.count > SILT_FORKS_MAX)
        return refuse_number(c);
    for (const struct silt_json *v = ids->items.first; v != NULL; v = v->next) {
        if (v->type != SILT_JSON_STRING) {
            silt_api_refuse_field(c->request, "ids", "must be strings");
            return false;
        }
        if (!add_id(c, f, v->string))
            return false;
    }
    return true;
}

/* ---- answers ---- */

/* Names every id that is taken, not only the first. */
static void refuse_taken(const struct forking *f)
{
    silt_auto_buf b;
    silt_buf_init(&b, 64 << 10);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("taken"));
    silt_json_open(&b, '[');
    for (size_t i = 0; i < f->count; i++)
        if (silt_registry_find(f->api->registry, silt_slice_of(f->ids[i])) != NULL)
            silt_json_string(&b, silt_slice_of(f->ids[i]));
    silt_json_close(&b, ']');
    silt_json_close(&b, '}');
    silt_api_refuse(f->request, SILT_API_SANDBOX_EXISTS, silt_buf_slice(&b),
                    "%s taken; no sandbox was made", f->count == 1 ? "The id is" : "Ids are");
}

static void refuse(struct forking *f, const struct silt_error *e)
{
    if (e->code == SILT_CONFLICT)
        refuse_taken(f);
    else if (e->code == SILT_UNAVAILABLE && f->networked)
        silt_api_network_refuse(f->request, e);
    else
        silt_api_refuse_error(f->request, e);
}

static void answer_all(const struct forking *f)
{
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("sandboxes"));
    silt_json_open(&b, '[');
    for (size_t i = 0; i < f->count; i++) {
        const struct silt_sandbox *s =
            silt_registry_find(f->api->registry, silt_slice_of(f->ids[i]));
        if (s != NULL)
            silt_api_add_sandbox(&b, s, NULL);
    }
    silt_json_close(&b, ']');
    silt_json_close(&b, '}');
    silt_api_answer(f->request, 201, &b);
}

static void on_started(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct forking *f = silt_outer(w, struct forking, waiter);
    struct silt_http_request *r = f->request;
    if (r != NULL) {
        r->on_gone = NULL;
        if (s != NULL)
            silt_api_show_sandbox(f->api, r, s, 201);
        else
            refuse(f, e);
    }
    free(f);
}

static void on_forked(void *context, const struct silt_error *e)
{
    struct forking *f = context;
    struct silt_http_request *r = f->request;
    if (e == NULL && f->starts) {
        f->waiter.on_ready = on_started;
        silt_registry_use(f->api->registry, silt_slice_of(f->ids[0]), &f->waiter);
        return;
    }
    if (r != NULL) {
        r->on_gone = NULL;
        if (e != NULL)
            refuse(f, e);
        else
            answer_all(f);
    }
    free(f);
}

/* ---- the two routes ---- */

static struct forking *begin(struct silt_call *c)
{
    struct forking *f = calloc(1, sizeof(*f));
    if (f == NULL)
        abort();
    f->api = c->api;
    f->request = c->request;
    return f;
}

/* Takes f, which on_forked may have freed when this returns. One of s and i is NULL. */
static void start(struct silt_call *c, struct forking *f, struct silt_sandbox *s,
                  struct silt_image *i, const struct silt_sandbox_row *like)
{
    struct silt_fork_options o = {
        .ids = (const char(*)[SILT_ID_MAX + 1]) f->ids, .count = f->count, .like = like};
    struct silt_error e;
    c->request->owner = f;
    c->request->on_gone = on_gone;
    int done = s != NULL ? silt_fork_sandbox(s, &o, on_forked, f, &e)
                         : silt_fork_image(i, &o, on_forked, f, &e);
    if (done < 0)
        on_forked(f, &e);
}

static void fork_sandbox(struct silt_call *c)
{
    struct silt_sandbox *s = c->sandbox;
    struct silt_sandbox_row like;
    if (s->state == SILT_SANDBOX_DESTROYING) {
        silt_api_refuse_missing(c->request, c->id);
        return;
    }
    struct forking *f = begin(c);
    if (read_ids(c, f) && read_choices(c, &s->row, &like, &f->networked))
        start(c, f, s, NULL, &like);
    else
        free(f);
}

static const struct silt_call_kind fork_call = {
    .body = SILT_BODY_REQUIRED, .sandbox = SILT_CALL_LOOKS, .native = true, .run = fork_sandbox};

SILT_HANDLER(silt_api_sandbox_fork)
{
    silt_call_begin(r, args, &fork_call);
}

static void create_from_snapshot(struct silt_call *c, struct forking *f, silt_slice id)
{
    struct silt_image *i = silt_snapshot_find(c->api->registry, id);
    struct silt_recovery_sandbox kept = {0};
    struct silt_sandbox_row like;
    struct silt_error e;
    if (i == NULL) {
        silt_api_refuse(c->request, SILT_API_SNAPSHOT_NOT_FOUND, (silt_slice){NULL, 0},
                        "Snapshot '%.*s' does not exist", (int)(id.len < 64 ? id.len : 64),
                        id.data);
        free(f);
        return;
    }
    silt_slice record = {i->snapshot->record, i->snapshot->record_len};
    if (silt_recovery_read_sandbox(record, &kept, &e) < 0) {
        silt_api_refuse_error(c->request, &e);
        free(f);
    } else if (read_choices(c, &kept.row, &like, &f->networked)) {
        start(c, f, NULL, i, &like);
    } else {
        free(f);
    }
    silt_recovery_sandbox_fini(&kept);
}

static void create_from_sandbox(struct silt_call *c, struct forking *f, silt_slice id)
{
    struct silt_sandbox *s = silt_registry_find(c->api->registry, id);
    struct silt_sandbox_row like;
    if (s == NULL || s->state == SILT_SANDBOX_DESTROYING)
        silt_api_refuse_missing(c->request, id);
    else if (read_choices(c, &s->row, &like, &f->networked)) {
        start(c, f, s, NULL, &like);
        return;
    }
    free(f);
}

void silt_api_create_from(struct silt_call *c, const char *id)
{
    const struct silt_json *from = silt_json_get(c->body, SILT_LIT("from"));
    const struct silt_json *snapshot = silt_json_get(from, SILT_LIT("snapshot"));
    const struct silt_json *sandbox = silt_json_get(from, SILT_LIT("sandbox"));
    const struct silt_json *source = snapshot != NULL ? snapshot : sandbox;
    if ((snapshot == NULL) == (sandbox == NULL) || source->type != SILT_JSON_STRING) {
        silt_api_refuse_field(c->request, "from",
                              "must be {\"snapshot\": ID} or {\"sandbox\": ID}");
        return;
    }
    if (silt_json_get(c->body, SILT_LIT("image")) != NULL) {
        silt_api_refuse_field(c->request, "image", "is that of the source; leave it out");
        return;
    }
    struct forking *f = begin(c);
    f->starts = true;
    f->count = 1;
    (void)snprintf(f->ids[0], sizeof(f->ids[0]), "%s", id);
    if (snapshot != NULL)
        create_from_snapshot(c, f, source->string);
    else
        create_from_sandbox(c, f, source->string);
}
