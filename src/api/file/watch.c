/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/watch and POST /v1/…/watch: file changes as server-sent events. A slow reader holds
 * nothing back: events that no longer fit are counted and reported as an overflow. */
#include "api/core/sse.h"
#include "api/file/watch_request.h"
#include "base/clock.h"

#include <stdlib.h>

enum {
    WINDOW_MS = 75,     /* events of one kind on one path within this time are merged */
    PENDING_MAX = 1000, /* distinct events in a window */
    ESTABLISH_MS = 10000,
    SILENT_MS = 500, /* errors up to this time are HTTP errors; later ones are events */
    EVENT_MAX = SILT_WORKER_PATH_MAX * 6 + 1024,
};

struct pending {
    struct silt_link link;
    uint32_t what;
    bool is_dir;
    int64_t time_ms;
    size_t key_len;
    char key[]; /* the two fields above, then the path */
};
enum { KEY_PATH = 5 };

struct watching {
    struct silt_listener listener;
    struct silt_sse sse;
    struct silt_link link;        /* in api->watchings */
    struct silt_sandbox *sandbox; /* borrowed, held */
    struct silt_timer window;     /* runs while something is pending */
    struct silt_timer establish;  /* until ready: SILENT_MS, then the remaining time */
    bool native, ready;
    struct silt_map pending;
    struct silt_link order; /* in order of first occurrence */
    uint64_t dropped;
    silt_slice path; /* lives as long as the request */
};

static const char *name_of(uint32_t what)
{
    return what == SILT_WATCH_CREATE      ? "create"
           : what == SILT_WATCH_MODIFY    ? "modify"
           : what == SILT_WATCH_DELETE    ? "delete"
           : what == SILT_WATCH_MOVE_FROM ? "move_from"
           : what == SILT_WATCH_MOVE_TO   ? "move_to"
                                          : "attrib";
}

static void drop_pending(struct watching *w)
{
    silt_list_each(it, &w->order) free(silt_outer(it, struct pending, link));
    silt_list_init(&w->order);
    silt_map_fini(&w->pending);
    silt_map_init(&w->pending);
}

/* The request has been answered or is gone. */
static void free_watching(struct watching *w)
{
    silt_file_watch_leave(&w->listener);
    silt_loop_cancel(w->sse.loop, &w->window);
    silt_loop_cancel(w->sse.loop, &w->establish);
    silt_list_remove(&w->link);
    drop_pending(w);
    silt_map_fini(&w->pending);
    silt_sandbox_release(w->sandbox);
    free(w);
}

static void on_gone(struct silt_http_request *r)
{
    struct watching *w = r->owner;
    (void)silt_sse_fini(&w->sse);
    free_watching(w);
}

/* ---- events ---- */

static void send_event(struct watching *w, uint32_t what, bool is_dir, silt_slice path,
                       int64_t time_ms)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "event");
    silt_json_key(&b, SILT_LIT("eventType"));
    silt_json_string(&b, silt_slice_of(name_of(what)));
    silt_json_key(&b, SILT_LIT("path"));
    silt_json_string(&b, path);
    silt_json_key(&b, SILT_LIT("isDirectory"));
    silt_json_bool(&b, is_dir);
    silt_json_key(&b, SILT_LIT("timestamp"));
    silt_api_time(&b, time_ms);
    silt_sse_send(&w->sse, &b);
}

/* `dropped` 0: the kernel did not say how many. */
static void send_overflow(struct watching *w, uint64_t dropped)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "overflow");
    silt_json_key(&b, SILT_LIT("reason"));
    silt_json_string(&b, dropped > 0 ? SILT_LIT("reader") : SILT_LIT("kernel"));
    if (dropped > 0) {
        silt_json_key(&b, SILT_LIT("dropped"));
        silt_json_u64(&b, dropped);
    }
    silt_api_timestamp(&b);
    silt_sse_send(&w->sse, &b);
}

static void send_limit(struct watching *w, silt_slice path)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "limit");
    silt_json_key(&b, SILT_LIT("path"));
    silt_json_string(&b, path);
    silt_api_timestamp(&b);
    silt_sse_send(&w->sse, &b);
}

static bool has_room(const struct watching *w)
{
    return silt_http_pending(w->sse.request) < SILT_HTTP_MARK;
}

static void tell_dropped(struct watching *w)
{
    uint64_t n = w->dropped;
    w->dropped = 0;
    if (n > 0)
        send_overflow(w, n);
}

/* Events that do not fit the reader's window wait for on_drain; new ones join them. */
static void flush(struct watching *w)
{
    if (!w->ready || w->window.place != 0)
        return;
    while (!silt_list_empty(&w->order) && has_room(w)) {
        struct pending *p = silt_outer(w->order.next, struct pending, link);
        send_event(w, p->what, p->is_dir, (silt_slice){p->key + KEY_PATH, p->key_len - KEY_PATH},
                   p->time_ms);
        (void)silt_map_remove(&w->pending, (silt_slice){p->key, p->key_len});
        silt_list_remove(&p->link);
        free(p);
    }
    if (silt_list_empty(&w->order) && has_room(w))
        tell_dropped(w);
}

static void on_window(struct silt_timer *t)
{
    flush(silt_outer(t, struct watching, window));
}

static void on_drain(struct silt_http_request *r)
{
    flush(r->owner);
}

static void on_halved(struct silt_http_request *r)
{
    struct watching *w = r->owner;
    silt_sse_probe(&w->sse);
}

static void gather(struct watching *w, uint32_t what, bool is_dir, silt_slice path)
{
    char key[KEY_PATH + SILT_WORKER_PATH_MAX];
    silt_slice k = {key, KEY_PATH + path.len};
    memcpy(key, &what, sizeof(what));
    key[KEY_PATH - 1] = is_dir;
    memcpy(key + KEY_PATH, path.data, path.len);
    struct pending *p = silt_map_find(&w->pending, k);
    if (p == NULL && w->pending.used >= PENDING_MAX) {
        w->dropped++;
        return;
    }
    if (p == NULL) {
        p = calloc(1, sizeof(*p) + k.len);
        if (p == NULL)
            abort();
        *p = (struct pending){.what = what, .is_dir = is_dir, .key_len = k.len};
        memcpy(p->key, k.data, k.len);
        silt_list_append(&w->order, &p->link);
        silt_map_put(&w->pending, (silt_slice){p->key, p->key_len}, p);
    }
    p->time_ms = silt_clock_wall_ms();
    if (w->window.place == 0 && has_room(w))
        silt_loop_after(w->sse.loop, &w->window, WINDOW_MS);
}

static void on_event(struct silt_listener *l, uint32_t what, bool is_dir, silt_slice path)
{
    struct watching *w = silt_outer(l, struct watching, listener);
    if (what == SILT_WATCH_OVERFLOW || what == SILT_WATCH_LIMIT) {
        if (w->ready && has_room(w)) {
            if (what == SILT_WATCH_LIMIT)
                send_limit(w, path);
            else
                send_overflow(w, 0);
        } else if (w->ready) {
            w->dropped++;
        }
        return;
    }
    if (!w->native) {
        gather(w, what, is_dir, path);
    } else if (w->ready && w->dropped == 0 && has_room(w)) {
        send_event(w, what, is_dir, path, silt_clock_wall_ms());
    } else {
        w->dropped++;
    }
}

/* ---- life ---- */

static void finish(struct watching *w, const char *type, const char *key, const char *text)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_loop_cancel(w->sse.loop, &w->window);
    flush(w);
    w->dropped += w->pending.used; /* the reader is behind */
    tell_dropped(w);
    silt_sse_open(&b, type);
    silt_json_key(&b, silt_slice_of(key));
    silt_json_string(&b, silt_slice_of(text));
    silt_sse_send(&w->sse, &b);
    silt_http_end(silt_sse_fini(&w->sse));
    free_watching(w);
}

static void on_ready(struct silt_listener *l)
{
    struct watching *w = silt_outer(l, struct watching, listener);
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_loop_cancel(w->sse.loop, &w->establish);
    silt_sse_begin(&w->sse);
    silt_sse_open(&b, "watching");
    silt_json_key(&b, SILT_LIT("path"));
    silt_json_string(&b, w->path);
    silt_json_key(&b, SILT_LIT("watchId"));
    silt_json_string(&b, silt_slice_of(silt_file_watch_id(l->file_watch)));
    silt_sse_send(&w->sse, &b);
    w->ready = true;
    if (silt_file_watch_is_partial(l->file_watch))
        send_limit(w, w->path);
}

static void on_ended(struct silt_listener *l, const struct silt_error *e)
{
    struct watching *w = silt_outer(l, struct watching, listener);
    if (!w->sse.begun) {
        silt_watch_refuse_failed(silt_sse_fini(&w->sse), w->path, e);
        free_watching(w);
    } else if (w->ready && (e->code == SILT_NOT_FOUND || e->code == SILT_GONE)) {
        finish(w, "stopped", "reason", e->text);
    } else {
        finish(w, "error", "error", e->text);
    }
}

static void on_not_established(struct silt_timer *t)
{
    struct watching *w = silt_outer(t, struct watching, establish);
    if (w->sse.begun) {
        finish(w, "error", "error", "the watch was not established within 10 s");
        return;
    }
    silt_sse_begin(&w->sse);
    silt_loop_after(w->sse.loop, &w->establish, ESTABLISH_MS - SILENT_MS);
}

void silt_api_stop_watches(struct silt_api *api)
{
    silt_list_each(it, &api->watchings)
    {
        struct watching *w = silt_outer(it, struct watching, link);
        silt_sse_begin(&w->sse);
        finish(w, w->ready ? "stopped" : "error", w->ready ? "reason" : "error",
               "the daemon is stopped");
    }
}

static void run(struct silt_call *c)
{
    struct silt_watch_ask *ask = c->own;
    struct silt_error e;
    struct watching *w = calloc(1, sizeof(*w));
    bool is_new;
    if (w == NULL)
        abort();
    *w = (struct watching){
        .listener = {.ready = on_ready, .event = on_event, .ended = on_ended},
        .sandbox = c->sandbox,
        .window = {.on_time = on_window},
        .establish = {.on_time = on_not_established},
        .native = ask->native,
        .path = ask->request.path,
    };
    silt_list_init(&w->listener.link);
    silt_list_init(&w->order);
    silt_map_init(&w->pending);
    silt_sse_init(&w->sse, c->api->loop, c->request);
    silt_list_append(&c->api->watchings, &w->link);
    silt_sandbox_hold(w->sandbox);
    c->request->owner = w;
    c->request->on_gone = on_gone;
    c->request->on_drain = on_drain;
    c->request->on_halved = on_halved;
    if (silt_file_watch_join(w->sandbox, &ask->request, &w->listener, &is_new, &e) < 0)
        on_ended(&w->listener, &e);
    else if (silt_file_watch_is_ready(w->listener.file_watch))
        on_ready(&w->listener);
    else
        silt_loop_after(w->sse.loop, &w->establish, SILENT_MS);
}

/* A client that mounts a bucket syncs it by watching its directory, wherever that is: recursive,
 * without filters. It would only log an error, and files written there would never reach the
 * bucket. */
static bool is_mount(const struct silt_call *c)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("recursive"));
    return v != NULL && v->type == SILT_JSON_BOOL && v->boolean
           && silt_json_get(c->body, SILT_LIT("include")) == NULL
           && silt_json_get(c->body, SILT_LIT("exclude")) == NULL
           && silt_json_get(c->body, SILT_LIT("events")) == NULL;
}

enum { ANYWHERE = 1 }; /* variant */

static bool parse(struct silt_call *c)
{
    struct silt_watch_ask *ask = silt_arena_alloc(c->request->arena, sizeof(*ask));
    if (ask == NULL)
        abort();
    ask->native = c->kind->native;
    ask->anywhere = c->kind->variant == ANYWHERE || (!ask->native && is_mount(c));
    c->own = ask;
    return silt_watch_ask_read(c, ask);
}

static const struct silt_call_kind watch_call = {
    .body = SILT_BODY_REQUIRED, .parse = parse, .run = run};
static const struct silt_call_kind anywhere_call = {
    .body = SILT_BODY_REQUIRED, .variant = ANYWHERE, .parse = parse, .run = run};
static const struct silt_call_kind native_call = {
    .body = SILT_BODY_REQUIRED, .native = true, .parse = parse, .run = run};

SILT_HANDLER(silt_api_watch)
{
    silt_call_begin(r, args, &watch_call);
}

SILT_HANDLER(silt_api_watch_anywhere)
{
    silt_call_begin(r, args, &anywhere_call);
}

SILT_HANDLER(silt_api_watch_native)
{
    silt_call_begin(r, args, &native_call);
}
