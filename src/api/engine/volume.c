/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes: create, list, inspect, remove. */
#include "api/engine/engine.h"
#include "json/json.h"
#include "sandbox/container/volume.h"

#include <assert.h>

enum { ANSWER_MAX = 4 << 20, LABELS_MAX = 64 << 10 };

static void write_volume(struct silt_buf *b, const struct silt_volume *v)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("Name"));
    silt_json_string(b, silt_slice_of(v->row.name));
    silt_json_key(b, SILT_LIT("Driver"));
    silt_json_string(b, SILT_LIT("local"));
    silt_json_key(b, SILT_LIT("Scope"));
    silt_json_string(b, SILT_LIT("local"));
    silt_json_key(b, SILT_LIT("Mountpoint"));
    silt_json_string(b, SILT_LIT(""));
    silt_json_key(b, SILT_LIT("CreatedAt"));
    silt_api_time(b, v->row.created_ms);
    silt_json_key(b, SILT_LIT("Labels"));
    silt_json_raw(b, v->row.labels != NULL ? silt_slice_of(v->row.labels) : SILT_LIT("{}"));
    silt_json_key(b, SILT_LIT("Options"));
    silt_json_raw(b, SILT_LIT("{}"));
    silt_json_close(b, '}');
}

SILT_HANDLER(silt_engine_volume_list)
{
    struct silt_engine *g = silt_engine_of(r);
    const struct silt_json *filters;
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, ANSWER_MAX);
    if (!silt_engine_take_filters(r, &filters))
        return;
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("Volumes"));
    silt_json_open(&b, '[');
    silt_list_each(it, &g->all->volumes)
    {
        const struct silt_volume *v = silt_outer(it, struct silt_volume, link);
        if ((!v->going || v->stuck)
            && silt_engine_passes(filters, "name", silt_slice_of(v->row.name), true))
            write_volume(&b, v);
    }
    silt_json_close(&b, ']');
    silt_json_key(&b, SILT_LIT("Warnings"));
    silt_json_raw(&b, SILT_LIT("[]"));
    silt_json_close(&b, '}');
    silt_engine_answer(r, 200, &b);
}

static int read_volume(struct silt_http_request *r, silt_slice *ret_name, struct silt_buf *labels,
                       struct silt_error *e)
{
    const struct silt_json *o, *name, *v;
    char random[65];
    if (silt_json_read(r->arena, r->body, &o, e) < 0)
        return -1;
    name = silt_json_get(o, SILT_LIT("Name"));
    v = silt_json_get(o, SILT_LIT("Labels"));
    if (o->type != SILT_JSON_OBJECT || (name != NULL && name->type != SILT_JSON_STRING))
        return silt_fail(e, SILT_INVALID, "the request must be an object with a Name");
    if (v != NULL && v->type == SILT_JSON_OBJECT)
        silt_json_value(labels, v);
    else if (v != NULL && v->type != SILT_JSON_NULL)
        return silt_fail(e, SILT_INVALID, "Labels must be an object of strings");
    if (labels->broken)
        return silt_fail(e, SILT_LIMIT, "Labels of more than %d bytes", LABELS_MAX);
    silt_id_random_hex(random);
    *ret_name = name != NULL && name->string.len > 0
                    ? name->string
                    : (silt_slice){silt_arena_dup(r->arena, silt_slice_of(random)), 64};
    if (ret_name->data == NULL)
        return silt_fail(e, SILT_LIMIT, "the request is too large");
    return 0;
}

SILT_HANDLER(silt_engine_volume_create)
{
    struct silt_engine *g = silt_engine_of(r);
    struct silt_volume *v;
    struct silt_error e;
    silt_slice name;
    bool existed;
    silt_auto_buf b, labels;
    (void)args;
    silt_buf_init(&b, ANSWER_MAX);
    silt_buf_init(&labels, LABELS_MAX);
    if (read_volume(r, &name, &labels, &e) < 0
        || silt_volume_create(g->all, name, silt_buf_slice(&labels), &v, &existed, &e) < 0) {
        silt_engine_refuse_error(r, &e);
        return;
    }
    write_volume(&b, v);
    silt_engine_answer(r, existed ? 200 : 201, &b);
}

static struct silt_volume *known(struct silt_http_request *r, silt_slice raw)
{
    silt_slice name = silt_percent_decode(r->arena, raw);
    struct silt_volume *v = silt_volume_find(silt_engine_of(r)->all, name);
    if (v == NULL)
        silt_engine_refuse(r, 404, "get %.*s: no such volume",
                           (int)(name.len < 300 ? name.len : 300), name.data);
    return v;
}

SILT_HANDLER(silt_engine_volume_inspect)
{
    const struct silt_volume *v = known(r, args[0]);
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX);
    if (v == NULL)
        return;
    write_volume(&b, v);
    silt_engine_answer(r, 200, &b);
}

struct removing {
    struct silt_container_ask ask;
    struct silt_http_request *request;
};

static void on_removed(struct silt_container_ask *a, const struct silt_error *e)
{
    struct silt_http_request *r = silt_outer(a, struct removing, ask)->request;
    if (e == NULL)
        silt_engine_empty(r, 204);
    else
        silt_engine_refuse_error(r, e);
}

static void on_gone(struct silt_http_request *r)
{
    struct removing *d = r->owner;
    silt_container_ask_leave(&d->ask);
}

SILT_HANDLER(silt_engine_volume_remove)
{
    struct silt_volume *v = known(r, args[0]);
    struct silt_error e;
    if (v == NULL)
        return;
    struct removing *d = silt_arena_alloc(r->arena, sizeof(*d));
    assert(d != NULL);
    *d = (struct removing){.ask = {.on_done = on_removed}, .request = r};
    silt_list_init(&d->ask.link);
    r->owner = d;
    r->on_gone = on_gone;
    if (silt_volume_remove(v, &d->ask, &e) < 0)
        silt_engine_refuse_error(r, &e);
}
