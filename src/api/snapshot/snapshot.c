/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: take, list, show and delete snapshots, below /v1/sandboxes/{id}/snapshots and
 * /v1/snapshots. */
#include "sandbox/image/snapshot.h"
#include "api/core/api.h"
#include "api/sandbox/options.h"
#include "api/sandbox/view.h"
#include "sandbox/core/sandbox.h"

#include <stdlib.h>

enum { LIST_MAX = 16 << 20 };

static void add_time(struct silt_buf *b, const char *key, int64_t wall_ms)
{
    silt_json_key(b, silt_slice_of(key));
    if (wall_ms > 0)
        silt_api_time(b, wall_ms);
    else
        silt_json_null(b);
}

static void add_snapshot(struct silt_buf *b, const struct silt_image *i)
{
    const struct silt_snapshot_row *row = i->snapshot;
    silt_json_open(b, '{');
    silt_json_add_text(b, "id", row->id);
    silt_json_add_text(b, "sandboxId", row->sandbox);
    silt_json_key(b, SILT_LIT("name"));
    if (row->name != NULL)
        silt_json_string(b, silt_slice_of(row->name));
    else
        silt_json_null(b);
    silt_json_add_u64(b, "bytes", row->bytes);
    add_time(b, "createdAt", row->created_ms);
    add_time(b, "expiresAt", row->expires_ms);
    silt_json_add_bool(b, "automatic", row->automatic);
    silt_json_close(b, '}');
}

static void answer_snapshot(struct silt_http_request *r, int status, const struct silt_image *i)
{
    silt_auto_buf b;
    silt_buf_init(&b, 16 << 10);
    add_snapshot(&b, i);
    silt_api_answer(r, status, &b);
}

/* ---- take ---- */

struct taking {
    struct silt_http_request *request; /* NULL: the client has left; the snapshot is kept */
};

static void on_taken(void *context, struct silt_image *image, const struct silt_error *e)
{
    struct taking *t = context;
    struct silt_http_request *r = t->request;
    free(t);
    if (r == NULL)
        return;
    r->on_gone = NULL;
    if (image != NULL)
        answer_snapshot(r, 201, image);
    else
        silt_api_refuse_error(r, e);
}

static void on_gone(struct silt_http_request *r)
{
    struct taking *t = r->owner;
    t->request = NULL;
}

static bool read_name(struct silt_call *c, silt_slice *ret)
{
    if (!silt_body_string(c, "name", ret))
        return false;
    bool good = ret->len <= SILT_SNAPSHOT_NAME_MAX && !silt_slice_has_byte(*ret, 0);
    if (!good || (ret->data != NULL && silt_is_blank(*ret))) {
        silt_api_refuse_field(c->request, "name", "must be 1 to 128 bytes and not blank");
        return false;
    }
    return true;
}

static bool parse_take(struct silt_call *c)
{
    struct silt_snapshot_options *o = silt_arena_alloc(c->request->arena, sizeof(*o));
    bool none;
    if (o == NULL)
        abort();
    *o = (struct silt_snapshot_options){.ttl_s = -1};
    c->own = o;
    if (c->body != NULL
        && (!read_name(c, &o->name) || !silt_api_read_duration(c, "ttl", &o->ttl_s, &none)))
        return false;
    if (o->ttl_s == 0) {
        silt_api_refuse_field(c->request, "ttl", "must be at least one second");
        return false;
    }
    return true;
}

static void take(struct silt_call *c)
{
    struct silt_http_request *r = c->request;
    struct silt_error e;
    if (c->sandbox->state == SILT_SANDBOX_DESTROYING) {
        silt_api_refuse_missing(r, c->id);
        return;
    }
    struct taking *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    if (silt_snapshot_take(c->sandbox, c->own, on_taken, t, &e) < 0) {
        free(t);
        silt_api_refuse_error(r, &e);
        return;
    }
    t->request = r;
    r->owner = t;
    r->on_gone = on_gone;
}

static const struct silt_call_kind take_call = {.body = SILT_BODY_OPTIONAL,
                                                .sandbox = SILT_CALL_LOOKS,
                                                .native = true,
                                                .parse = parse_take,
                                                .run = take};

SILT_HANDLER(silt_api_snapshot_take)
{
    silt_call_begin(r, args, &take_call);
}

/* ---- list, show, delete ---- */

/* `sandbox` NULL: all. The newest last. ?automatic=true adds those from before commands. */
static void answer_list(struct silt_http_request *r, const char *sandbox)
{
    silt_auto_buf b = {0};
    bool automatic = false;
    if (!silt_query_flag(r, "automatic", &automatic))
        return;
    silt_buf_init(&b, LIST_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("snapshots"));
    silt_json_open(&b, '[');
    silt_list_each(it, &silt_api_of(r)->registry->images)
    {
        const struct silt_image *i = silt_outer(it, struct silt_image, link);
        if (i->snapshot != NULL && (automatic || !i->snapshot->automatic)
            && (sandbox == NULL || strcmp(i->snapshot->sandbox, sandbox) == 0))
            add_snapshot(&b, i);
    }
    silt_json_close(&b, ']');
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

SILT_HANDLER(silt_api_snapshot_list)
{
    (void)args;
    answer_list(r, NULL);
}

/* Also of a sandbox that is gone. */
SILT_HANDLER(silt_api_snapshot_list_of)
{
    struct silt_error e;
    char id[SILT_ID_MAX + 1];
    if (silt_id_check(args[0], &e) < 0) {
        silt_api_refuse_field(r, "id", e.text);
        return;
    }
    memcpy(id, args[0].data, args[0].len);
    id[args[0].len] = 0;
    answer_list(r, id);
}

/* NULL: refused. */
static struct silt_image *find(struct silt_http_request *r, silt_slice id)
{
    struct silt_image *i = silt_snapshot_find(silt_api_of(r)->registry, id);
    if (i == NULL)
        silt_api_refuse(r, SILT_API_SNAPSHOT_NOT_FOUND, (silt_slice){NULL, 0},
                        "Snapshot '%.*s' does not exist", (int)(id.len < 64 ? id.len : 64),
                        id.data);
    return i;
}

SILT_HANDLER(silt_api_snapshot_get)
{
    const struct silt_image *i = find(r, args[0]);
    if (i != NULL)
        answer_snapshot(r, 200, i);
}

SILT_HANDLER(silt_api_snapshot_delete)
{
    struct silt_error e;
    struct silt_image *i = silt_snapshot_find(silt_api_of(r)->registry, args[0]);
    silt_auto_buf b = {0};
    if (i != NULL && silt_snapshot_delete(i, &e) < 0) {
        silt_api_refuse_error(r, &e);
        return;
    }
    silt_buf_init(&b, 4096);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("id"));
    silt_json_string(&b, (silt_slice){args[0].data, args[0].len < 64 ? args[0].len : 64});
    silt_json_key(&b, SILT_LIT("deleted"));
    silt_json_bool(&b, i != NULL);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}
