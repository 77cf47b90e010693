/* SPDX-License-Identifier: Apache-2.0 */
/* …/archive?path=…: a file or folder of a container as a tar, or a tar into a folder; before its start, while it runs and after. What lies below a
 * mount is the volume's. The handlers of /v1/sandboxes/{id}/files do the work. */
#include "api/engine.h"
#include "sandbox/container_volume.h"
#include "sandbox/sandbox.h"

#include <assert.h>

struct archiving {
    struct silt_engine *engine;
    struct silt_http_request *request;
    struct silt_waiter waiter;
    void (*handle)(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX]);
};

static void on_gone(struct silt_http_request *r)
{
    struct archiving *a = r->owner;
    silt_waiter_leave(&a->waiter);
}

static void add_escaped(struct silt_buf *b, silt_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        silt_buf_addf(b, "%%%02x", (unsigned char)text.data[i]);
}

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct archiving *a = silt_container_of(w, struct archiving, waiter);
    struct silt_http_request *r = a->request;
    if (s == NULL) {
        silt_engine_refuse_error(r, e);
        return;
    }
    silt_slice args[SILT_ROUTE_ARGS_MAX] = {silt_slice_of(s->row.id)};
    r->on_gone = NULL;
    r->owner = a->engine->api;
    a->handle(r, args);
}

/* The last part may be `.`: the content of a folder, without a name of its own. So is what has none. */
static silt_slice place_of(silt_slice path, bool *ret_wrap)
{
    bool content = path.len > 1 && path.data[path.len - 1] == '.' && path.data[path.len - 2] == '/';
    while (path.len > 1 && (path.data[path.len - 1] == '/' || (path.data[path.len - 1] == '.' && path.data[path.len - 2] == '/')))
        path.len--;
    *ret_wrap = path.len > 1 && !content;
    return path;
}

static void archive(struct silt_http_request *r, silt_slice name, struct archiving how)
{
    struct silt_container *c = silt_engine_container(r, name);
    silt_auto_buf path, query;
    struct silt_error e;
    silt_buf_init(&path, 8192);
    silt_buf_init(&query, 32768);
    if (c == NULL)
        return;
    bool wrap;
    silt_slice asked = place_of(silt_engine_query(r, "path"), &wrap);
    if (asked.len == 0 || asked.data[0] != '/' || silt_slice_has_byte(asked, 0) || c->spec.kind != SILT_CONTAINER_APP) {
        silt_engine_refuse(r, 400, "path must be absolute, of a container with files");
        return;
    }
    struct silt_volume *v = silt_container_volume_at(c, asked, &path);
    if (v != NULL && memrchr(path.data, '/', path.len) == path.data)
        wrap = false; /* all of a volume, whose name in its own sandbox is not the mount's */
    silt_buf_addf(&query, "format=tar&owners=1&wrap=%d&path=", wrap);
    add_escaped(&query, v != NULL ? silt_buf_slice(&path) : asked);
    char *text = query.broken || path.broken ? NULL : silt_arena_dup(r->arena, silt_buf_slice(&query));
    struct archiving *a = silt_arena_alloc(r->arena, sizeof(*a));
    if (text == NULL || a == NULL) {
        silt_engine_refuse(r, 400, "path is too long");
        return;
    }
    *a = how;
    a->engine = silt_engine_of(r);
    a->request = r;
    a->waiter.on_ready = on_ready;
    silt_list_init(&a->waiter.link);
    silt_http_redirect_query(r, (silt_slice){text, query.len});
    r->owner = a;
    r->on_gone = on_gone;
    if ((v != NULL ? silt_volume_use(v, &a->waiter, &e) : silt_container_use(c, &a->waiter, &e)) < 0)
        silt_engine_refuse_error(r, &e);
}

SILT_HANDLER(silt_engine_archive_get)
{
    archive(r, args[0], (struct archiving){.handle = silt_api_native_get});
}

SILT_HANDLER(silt_engine_archive_put)
{
    archive(r, args[0], (struct archiving){.handle = silt_api_native_put});
}
