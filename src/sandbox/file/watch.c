/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/file/watch.h"
#include "base/buf.h"
#include "base/clock.h"
#include "sandbox/file/watch_event.h"
#include "sandbox/core/facet.h"

#include <assert.h>
#include <stdio.h>

enum {
    BUDGET = 4096, /* events accepted per window, so that others are served */
    WINDOW_MS = 20,
    KEY_MAX = SILT_FRAME_BODY_MAX,
};

/*   STARTING --READY--> READY --failure, GONE, no listener--> gone */
enum state { STARTING, READY, OVER };

struct silt_file_watch {
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_link link;        /* in sandbox->file_watches */
    struct silt_work_sink sink;
    struct silt_work *work; /* NULL: it has ended */
    enum state state;
    struct silt_link listeners;
    uint64_t count;
    bool partial;
    bool kept;
    int64_t asked_ms; /* when it was last polled */
    struct silt_timer keep;
    struct silt_timer rest; /* the worker is paused until it fires */
    uint32_t budget;
    struct silt_grave grave;
    char id[SILT_WATCH_ID_SIZE];
    size_t key_len;
    char key[]; /* identifies identical requests */
};

static struct silt_loop *loop_of(const struct silt_file_watch *w)
{
    return w->sandbox->registry->loop;
}

static void free_watch(struct silt_grave *g)
{
    free(silt_outer(g, struct silt_file_watch, grave));
}

/* Unlinks it and ends its worker. */
static void detach(struct silt_file_watch *w)
{
    assert(w->state != OVER);
    w->state = OVER;
    silt_loop_cancel(loop_of(w), &w->keep);
    silt_loop_cancel(loop_of(w), &w->rest);
    silt_list_remove(&w->link);
    if (w->work != NULL)
        silt_work_leave(w->work);
    w->work = NULL;
    silt_loop_bury(loop_of(w), &w->grave);
}

static void end(struct silt_file_watch *w, const struct silt_error *e)
{
    detach(w);
    while (!silt_list_empty(&w->listeners)) { /* a callback may make others leave */
        struct silt_listener *l = silt_list_first(&w->listeners, struct silt_listener, link);
        silt_list_remove(&l->link);
        l->file_watch = NULL;
        l->ended(l, e);
    }
}

static void leave_if_unwanted(struct silt_file_watch *w)
{
    if (w->state != OVER && !w->kept && silt_list_empty(&w->listeners))
        detach(w);
}

static void on_keep_over(struct silt_timer *t)
{
    struct silt_file_watch *w = silt_outer(t, struct silt_file_watch, keep);
    w->kept = false;
    leave_if_unwanted(w);
}

static void on_rested(struct silt_timer *t)
{
    struct silt_file_watch *w = silt_outer(t, struct silt_file_watch, rest);
    w->budget = BUDGET;
    if (w->work != NULL)
        silt_work_pause(w->work, false);
}

static void spend(struct silt_file_watch *w)
{
    if (w->state == OVER) /* the last listener left */
        return;
    if (w->rest.place == 0) {
        w->budget = BUDGET;
        silt_loop_after(loop_of(w), &w->rest, WINDOW_MS);
    }
    if (w->budget > 0)
        w->budget--;
    if (w->budget == 0 && w->work != NULL)
        silt_work_pause(w->work, true);
}

static void on_event(struct silt_file_watch *w, const struct silt_worker_event *v, silt_slice path)
{
    if (v->what == SILT_WATCH_READY) {
        if (w->state != STARTING)
            return;
        w->state = READY;
        silt_list_each(it, &w->listeners)
        {
            struct silt_listener *l = silt_outer(it, struct silt_listener, link);
            l->ready(l);
        }
        return;
    }
    if (v->what == SILT_WATCH_LIMIT)
        w->partial = true;
    else
        w->count++;
    silt_list_each(it, &w->listeners)
    {
        struct silt_listener *l = silt_outer(it, struct silt_listener, link);
        l->event(l, v->what, v->is_dir != 0, path);
    }
    spend(w);
}

static void on_said(struct silt_work_sink *sink, enum silt_worker_say type, silt_slice body,
                    bool last)
{
    struct silt_file_watch *w = silt_outer(sink, struct silt_file_watch, sink);
    struct silt_worker_event v;
    struct silt_error e;
    silt_slice path;
    int got = type == SILT_WORKER_SAY_EVENT ? 1 : -1;
    bool is_gone = false;
    if (last)
        w->work = NULL;
    while (got > 0 && w->state != OVER && (got = silt_watch_event_next(&body, &v, &path)) > 0) {
        is_gone = v.what == SILT_WATCH_GONE;
        if (is_gone)
            break;
        on_event(w, &v, path);
    }
    if (w->state == OVER)
        return; /* the last listener left */
    if (is_gone)
        (void)silt_fail(&e, SILT_NOT_FOUND, "the watched path is gone");
    else if (got < 0)
        (void)silt_fail(&e, SILT_PROTOCOL, "a worker inside the sandbox broke the protocol");
    else if (last)
        (void)silt_fail(&e, SILT_GONE, "the watch ended");
    else
        return;
    end(w, &e);
}

static void on_failed(struct silt_work_sink *sink, const struct silt_error *e)
{
    struct silt_file_watch *w = silt_outer(sink, struct silt_file_watch, sink);
    w->work = NULL;
    end(w, e);
}

/* ---- joining ---- */

static void lay_key(struct silt_buf *b, const struct silt_file_watch_request *q)
{
    silt_buf_addf(b, "%d %d %u ", q->recursive, q->include, q->events);
    silt_buf_add(b, q->path);
    silt_buf_add_byte(b, 0);
    silt_buf_add(b, q->patterns);
}

static struct silt_file_watch *find(struct silt_sandbox *s, silt_slice key)
{
    silt_list_each(it, &s->file_watches)
    {
        struct silt_file_watch *w = silt_outer(it, struct silt_file_watch, link);
        if (silt_slice_eq((silt_slice){w->key, w->key_len}, key))
            return w;
    }
    return NULL;
}

/* Ends the one polled longest ago. */
void silt_file_watch_make_room(struct silt_sandbox *s)
{
    struct silt_file_watch *oldest = NULL;
    if (s->work.longs < SILT_WORKER_WATCHES_MAX)
        return;
    silt_list_each(it, &s->file_watches)
    {
        struct silt_file_watch *w = silt_outer(it, struct silt_file_watch, link);
        if (silt_list_empty(&w->listeners) && (oldest == NULL || w->asked_ms < oldest->asked_ms))
            oldest = w;
    }
    if (oldest != NULL)
        detach(oldest);
}

static int start(struct silt_file_watch *w, const struct silt_file_watch_request *q,
                 struct silt_error *e)
{
    struct silt_work_request work = {
        .kind = SILT_WORK_LONG,
        .op = SILT_WORKER_WATCH,
        .ask = {.flags = (q->recursive ? SILT_WORKER_RECURSIVE : 0)
                         | (q->include ? SILT_WORKER_INCLUDE : 0),
                .limit = q->events},
        .path = q->path,
        .text = q->patterns,
    };
    return silt_work_start(w->sandbox, &work, &w->sink, &w->work, e);
}

static struct silt_file_watch *new_watch(struct silt_sandbox *s, silt_slice key)
{
    struct silt_file_watch *w = calloc(1, sizeof(*w) + key.len);
    if (w == NULL)
        abort();
    w->sandbox = s;
    w->sink = (struct silt_work_sink){.said = on_said, .failed = on_failed};
    w->keep.on_time = on_keep_over;
    w->rest.on_time = on_rested;
    w->grave.free = free_watch;
    silt_list_init(&w->listeners);
    silt_list_init(&w->link);
    (void)snprintf(w->id, sizeof(w->id), "watch-%llu-%lld",
                   (unsigned long long)++s->registry->file_watches,
                   (long long)silt_clock_wall_ms());
    w->key_len = key.len;
    memcpy(w->key, key.data, key.len);
    return w;
}

int silt_file_watch_join(struct silt_sandbox *s, const struct silt_file_watch_request *q,
                         struct silt_listener *l, bool *ret_is_new, struct silt_error *e)
{
    silt_auto_buf key;
    silt_buf_init(&key, KEY_MAX);
    lay_key(&key, q);
    if (key.broken)
        return silt_fail(e, SILT_LIMIT, "path and patterns of more than %d bytes", KEY_MAX);
    struct silt_file_watch *w = find(s, silt_buf_slice(&key));
    *ret_is_new = w == NULL;
    if (w == NULL) {
        silt_file_watch_make_room(s);
        w = new_watch(s, silt_buf_slice(&key));
        if (start(w, q, e) < 0) {
            free(w);
            return -1;
        }
        silt_list_append(&s->file_watches, &w->link);
    }
    l->file_watch = w;
    silt_list_append(&w->listeners, &l->link);
    return 0;
}

void silt_file_watch_leave(struct silt_listener *l)
{
    struct silt_file_watch *w = l->file_watch;
    if (w == NULL)
        return;
    l->file_watch = NULL;
    silt_list_remove(&l->link);
    leave_if_unwanted(w);
}

void silt_file_watch_keep(struct silt_file_watch *w)
{
    w->kept = true;
    w->asked_ms = silt_clock_ms();
    silt_loop_after(loop_of(w), &w->keep, SILT_WATCH_KEPT_MS);
}

const char *silt_file_watch_id(const struct silt_file_watch *w)
{
    return w->id;
}

bool silt_file_watch_is_ready(const struct silt_file_watch *w)
{
    return w->state == READY;
}

uint64_t silt_file_watch_count(const struct silt_file_watch *w)
{
    return w->count;
}

bool silt_file_watch_is_partial(const struct silt_file_watch *w)
{
    return w->partial;
}

static void forget_all(struct silt_sandbox *s)
{
    silt_list_each(it, &s->file_watches)
    {
        struct silt_file_watch *w = silt_outer(it, struct silt_file_watch, link);
        silt_loop_cancel(loop_of(w), &w->keep);
        silt_loop_cancel(loop_of(w), &w->rest);
        silt_list_remove(&w->link);
        free(w);
    }
}

const struct silt_facet silt_watch_facet = {.forget = forget_all};
