/* SPDX-License-Identifier: Apache-2.0 */
/* …/archive?path=…: reads a file or directory of a container as a tar, or unpacks a tar into a
 * directory; works before, during and after its run. Paths below a mount belong to the volume. The
 * handlers of /v1/sandboxes/{id}/files do the work. */
#include "api/engine/engine.h"
#include "base/base64.h"
#include "json/json.h"
#include "sandbox/container/volume.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/file/worker_pool.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

struct archiving {
    struct silt_engine *engine;
    struct silt_http_request *request;
    struct silt_waiter waiter;
    bool looks;      /* stat first: docker expects the metadata in the response head */
    silt_slice path; /* of the object, in its sandbox */
    char sandbox[SILT_ID_MAX + 1];
    struct silt_work *look; /* NULL: not running */
    struct silt_work_sink sink;
    void (*handle)(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX]);
};

static void on_gone(struct silt_http_request *r)
{
    struct archiving *a = r->owner;
    silt_waiter_leave(&a->waiter);
    if (a->look != NULL)
        silt_work_leave(a->look);
}

static void add_escaped(struct silt_buf *b, silt_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        silt_buf_addf(b, "%%%02x", (unsigned char)text.data[i]);
}

static void pass_on(struct archiving *a)
{
    struct silt_http_request *r = a->request;
    silt_slice args[SILT_ROUTE_ARGS_MAX] = {silt_slice_of(a->sandbox)};
    r->on_gone = NULL;
    r->owner = a->engine->api;
    a->handle(r, args);
}

/* In Go's encoding: permissions in the low bits, the type in the high bits. */
static uint32_t go_mode(const struct silt_worker_meta *m)
{
    uint32_t mode = m->mode & 0777;
    mode |= m->type == SILT_TYPE_DIR     ? 1U << 31
            : m->type == SILT_TYPE_LINK  ? 1U << 27
            : m->type == SILT_TYPE_OTHER ? 1U << 26
                                         : 0U;
    mode |= (m->mode & S_ISUID) != 0 ? 1U << 23 : 0U;
    mode |= (m->mode & S_ISGID) != 0 ? 1U << 22 : 0U;
    return mode | ((m->mode & S_ISVTX) != 0 ? 1U << 20 : 0U);
}

static void describe(struct archiving *a, const struct silt_worker_meta *m)
{
    silt_auto_buf b, field;
    struct silt_base64 coder = {0};
    silt_buf_init(&b, 64 << 10);
    silt_buf_init(&field, 128 << 10);
    const char *slash = memrchr(a->path.data, '/', a->path.len);
    silt_slice name = {slash + 1, a->path.len - (size_t)(slash + 1 - a->path.data)};
    silt_json_open(&b, '{');
    silt_json_add_slice(&b, "name", name.len > 0 ? name : SILT_LIT("/"));
    silt_json_add_u64(&b, "size", m->size);
    silt_json_add_u64(&b, "mode", go_mode(m));
    silt_json_key(&b, SILT_LIT("mtime"));
    silt_api_time(&b, m->mtime_ns / 1000000);
    silt_json_add_text(&b, "linkTarget", "");
    silt_json_close(&b, '}');
    silt_buf_add(&field, SILT_LIT("X-Docker-Container-Path-Stat: "));
    silt_base64_encode(&coder, &field, silt_buf_slice(&b));
    silt_base64_encode_end(&coder, &field);
    silt_buf_add(&field, SILT_LIT("\r\n"));
    char *text =
        b.broken || field.broken ? NULL : silt_arena_dup(a->request->arena, silt_buf_slice(&field));
    if (text != NULL)
        a->request->more_fields = (silt_slice){text, field.len};
}

static void on_look(struct silt_work_sink *s, enum silt_worker_say type, silt_slice body, bool last)
{
    struct archiving *a = silt_outer(s, struct archiving, sink);
    struct silt_worker_meta m;
    if (type == SILT_WORKER_SAY_META && body.len >= sizeof(m)) {
        memcpy(&m, body.data, sizeof(m));
        describe(a, &m);
    }
    if (!last)
        return;
    a->look = NULL;
    if (silt_slice_eq(a->request->head->method, SILT_LIT("HEAD"))) {
        a->request->on_gone = NULL;
        silt_engine_empty(a->request, 200);
    } else {
        pass_on(a);
    }
}

static void on_no_look(struct silt_work_sink *s, const struct silt_error *e)
{
    struct archiving *a = silt_outer(s, struct archiving, sink);
    a->look = NULL;
    a->request->on_gone = NULL;
    if (e->sys == ENOENT || e->sys == ENOTDIR)
        silt_engine_refuse(a->request, e->sys == ENOENT ? 404 : 400,
                           "Could not find the file %.*s in the container",
                           (int)(a->path.len < 300 ? a->path.len : 300), a->path.data);
    else
        silt_engine_refuse_error(a->request, e);
}

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct archiving *a = silt_outer(w, struct archiving, waiter);
    struct silt_http_request *r = a->request;
    if (s == NULL) {
        silt_engine_refuse_error(r, e);
        return;
    }
    struct silt_work_request q = {.op = SILT_WORKER_STAT,
                                  .ask = {.flags = SILT_WORKER_NOFOLLOW},
                                  .path = a->path,
                                  .patience_ms = SILT_WORK_PATIENCE_MS};
    struct silt_error own;
    memcpy(a->sandbox, s->row.id, sizeof(a->sandbox));
    a->sink = (struct silt_work_sink){.said = on_look, .failed = on_no_look};
    if (!a->looks)
        pass_on(a);
    else if (silt_work_start(s, &q, &a->sink, &a->look, &own) < 0)
        silt_engine_refuse_error(r, &own);
}

/* If the last component is `.`, or there is none, the tar has the directory's content without its
 * name. */
static silt_slice place_of(silt_slice path, bool *ret_wrap)
{
    bool content = path.len > 1 && path.data[path.len - 1] == '.' && path.data[path.len - 2] == '/';
    while (path.len > 1
           && (path.data[path.len - 1] == '/'
               || (path.data[path.len - 1] == '.' && path.data[path.len - 2] == '/')))
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
    if (asked.len == 0 || asked.data[0] != '/' || silt_slice_has_byte(asked, 0)
        || c->spec.kind != SILT_CONTAINER_APP) {
        silt_engine_refuse(r, 400, "path must be absolute, of a container with files");
        return;
    }
    struct silt_volume *v = silt_container_volume_at(c, asked, &path);
    if (v != NULL && memrchr(path.data, '/', path.len) == path.data)
        wrap = false; /* the whole volume, whose name in its own sandbox is not the mount's */
    silt_buf_addf(&query, "format=tar&owners=1&wrap=%d&path=", wrap);
    add_escaped(&query, v != NULL ? silt_buf_slice(&path) : asked);
    char *text =
        query.broken || path.broken ? NULL : silt_arena_dup(r->arena, silt_buf_slice(&query));
    struct archiving *a = silt_arena_alloc(r->arena, sizeof(*a));
    if (text == NULL || a == NULL) {
        silt_engine_refuse(r, 400, "path is too long");
        return;
    }
    *a = how;
    silt_slice place = v != NULL ? silt_buf_slice(&path) : asked;
    char *kept = silt_arena_dup(r->arena, place);
    assert(kept != NULL); /* it is shorter than the query */
    a->path = (silt_slice){kept, place.len};
    a->engine = silt_engine_of(r);
    a->request = r;
    a->waiter.on_ready = on_ready;
    silt_list_init(&a->waiter.link);
    silt_http_redirect_query(r, (silt_slice){text, query.len});
    r->owner = a;
    r->on_gone = on_gone;
    if ((v != NULL ? silt_volume_use(v, &a->waiter, &e) : silt_container_use(c, &a->waiter, &e))
        < 0)
        silt_engine_refuse_error(r, &e);
}

SILT_HANDLER(silt_engine_archive_get)
{
    archive(r, args[0], (struct archiving){.handle = silt_api_native_get, .looks = true});
}

SILT_HANDLER(silt_engine_archive_put)
{
    archive(r, args[0], (struct archiving){.handle = silt_api_native_put});
}
