/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/image/undo.h"
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/core/exec.h"

#include <stdio.h>
#include <stdlib.h>

enum { WAIT_MS = 5000 }; /* for a snapshot; then the command starts without it */

/* One command that waits for its snapshot. It ends with the snapshot's callback. */
struct waiting {
    struct silt_exec_guard guard;
    struct silt_timer timer;
    struct silt_registry *registry; /* borrowed */
    char sandbox[SILT_ID_MAX + 1];
    uint64_t number;                   /* of the command */
    char since[SILT_SNAPSHOT_ID_SIZE]; /* the snapshot before; empty: none */
    struct silt_grave grave;
};

/* ---- the list ---- */

static struct silt_history *find(const struct silt_sandbox *s, uint64_t number)
{
    if (s == NULL)
        return NULL;
    for (struct silt_link *it = s->history.prev; it != &s->history; it = it->prev) {
        struct silt_history *h = silt_outer(it, struct silt_history, link);
        if (h->row.number == number)
            return h;
    }
    return NULL;
}

struct silt_history *silt_history_at(const struct silt_sandbox *s, uint64_t steps)
{
    for (struct silt_link *it = s->history.prev; it != &s->history; it = it->prev)
        if (--steps == 0)
            return silt_outer(it, struct silt_history, link);
    return NULL;
}

struct silt_image *silt_history_image(const struct silt_sandbox *s, const struct silt_history *h)
{
    return h->row.snapshot[0] != 0 ? silt_snapshot_find(s->registry, silt_slice_of(h->row.snapshot))
                                   : NULL;
}

static void put(struct silt_sandbox *s, const struct silt_history *h)
{
    struct silt_error e;
    if (silt_store_put_history(s->registry->store, &h->row, &e) < 0)
        silt_log(SILT_LOG_WARN, "store.put", "sandbox=%s error=\"%s\"", s->row.id, e.text);
}

static void drop(struct silt_sandbox *s, struct silt_history *h)
{
    silt_list_remove(&h->link);
    s->history_count--;
    free(h);
}

static void forget_one(struct silt_sandbox *s, struct silt_history *h)
{
    struct silt_error e;
    if (silt_store_remove_history(s->registry->store, &h->row, &e) < 0)
        silt_log(SILT_LOG_WARN, "store.remove", "sandbox=%s error=\"%s\"", s->row.id, e.text);
    drop(s, h);
}

static struct silt_history *add(struct silt_sandbox *s, const struct silt_history_row *row)
{
    struct silt_history *h = malloc(sizeof(*h));
    if (h == NULL)
        abort();
    h->row = *row;
    silt_list_append(&s->history, &h->link);
    s->history_count++;
    if (s->history_count > SILT_HISTORY_MAX)
        forget_one(s, silt_list_first(&s->history, struct silt_history, link));
    return h;
}

void silt_history_cut(struct silt_sandbox *s, uint64_t number)
{
    bool more = find(s, number) != NULL;
    while (more) {
        struct silt_history *h = silt_outer(s->history.prev, struct silt_history, link);
        more = h->row.number != number;
        forget_one(s, h);
    }
}

/* ---- before a command ---- */

static void note_problem(struct silt_sandbox *s, struct silt_history *h, const char *why)
{
    silt_log(SILT_LOG_WARN, "snapshot.missing", "sandbox=%s error=\"%s\"", s->row.id, why);
    (void)snprintf(h->row.problem, sizeof(h->row.problem), "%s", why);
    put(s, h);
}

static void free_waiting(struct silt_grave *g)
{
    free(silt_outer(g, struct waiting, grave));
}

static void on_late(struct silt_timer *t)
{
    struct waiting *w = silt_outer(t, struct waiting, timer);
    struct silt_sandbox *s = silt_registry_find(w->registry, silt_slice_of(w->sandbox));
    struct silt_history *h = find(s, w->number);
    if (h != NULL)
        note_problem(s, h, "the disk was too busy to take it in time");
    silt_exec_go(&w->guard);
}

/* The files as they are now, or as they were at the last snapshot. */
static void keep(struct waiting *w, struct silt_image *image, const struct silt_error *e)
{
    struct silt_sandbox *s = silt_registry_find(w->registry, silt_slice_of(w->sandbox));
    struct silt_history *h = find(s, w->number);
    if (h == NULL)
        return;
    if (e != NULL && image == NULL) {
        note_problem(s, h, e->text);
        return;
    }
    memcpy(h->row.snapshot, image != NULL ? image->snapshot->id : w->since,
           sizeof(h->row.snapshot));
    put(s, h);
}

/* It ended while it waited for its snapshot. */
static void forget_unstarted(struct waiting *w)
{
    struct silt_sandbox *s = silt_registry_find(w->registry, silt_slice_of(w->sandbox));
    struct silt_history *h = find(s, w->number);
    if (h != NULL && h->row.problem[0] == 0)
        forget_one(s, h);
}

static void on_taken(void *context, struct silt_image *image, const struct silt_error *e)
{
    struct waiting *w = context;
    struct silt_error ignored;
    bool in_time = w->guard.exec != NULL;
    silt_loop_cancel(w->registry->loop, &w->timer);
    if (in_time)
        keep(w, image, e);
    else
        forget_unstarted(w);
    if (!in_time && image != NULL
        && silt_snapshot_delete(image, &ignored) < 0) /* the command has begun */
        silt_log(SILT_LOG_WARN, "snapshot.kept", "error=\"%s\"", ignored.text);
    silt_exec_go(&w->guard);
    silt_loop_bury(w->registry->loop, &w->grave);
}

/* NULL: the next command needs one of its own. */
static struct silt_image *find_last(const struct silt_sandbox *s)
{
    for (struct silt_link *it = s->history.prev; it != &s->history; it = it->prev) {
        struct silt_image *i = silt_history_image(s, silt_outer(it, struct silt_history, link));
        if (i != NULL)
            return i;
    }
    return NULL;
}

static void delay(struct silt_sandbox *s, struct silt_exec *x, struct silt_history *h)
{
    struct silt_snapshot_options o = {.automatic = true, .since = find_last(s)};
    struct waiting *w = calloc(1, sizeof(*w));
    struct silt_error e;
    if (w == NULL)
        abort();
    w->registry = s->registry;
    w->number = h->row.number;
    w->timer.on_time = on_late;
    w->grave.free = free_waiting;
    memcpy(w->sandbox, s->row.id, sizeof(w->sandbox));
    if (o.since != NULL)
        memcpy(w->since, o.since->snapshot->id, sizeof(w->since));
    silt_exec_delay(x, &w->guard);
    if (silt_snapshot_take(s, &o, on_taken, w, &e) == 0) {
        silt_loop_after(s->registry->loop, &w->timer, WAIT_MS);
        return;
    }
    note_problem(s, h, e.text);
    silt_exec_go(&w->guard);
    free(w);
}

static void before_command(struct silt_sandbox *s, struct silt_exec *x, uint64_t number,
                           const char *command)
{
    struct silt_history_row row = {
        .slot = s->row.slot, .number = number, .at_ms = silt_clock_wall_ms(), .exit_code = -1};
    (void)snprintf(row.command, sizeof(row.command), "%s", command);
    struct silt_history *h = add(s, &row);
    delay(s, x, h);
}

static void after_command(struct silt_sandbox *s, uint64_t number, int exit_code)
{
    struct silt_history *h = find(s, number);
    if (h == NULL)
        return;
    h->row.ended = true;
    h->row.exit_code = exit_code;
    put(s, h);
}

/* ---- siltd and sandboxes come and go ---- */

static void init(struct silt_sandbox *s)
{
    silt_list_init(&s->history);
}

static void load_row(void *context, const struct silt_history_row *row)
{
    struct silt_registry *r = context;
    struct silt_sandbox *s = row->slot < r->settings.slots ? r->by_slot[row->slot] : NULL;
    if (s != NULL)
        (void)add(s, row);
}

/* Those whose sandbox is gone: a full disk kept them, or siltd died in between. */
static void sweep(struct silt_registry *r)
{
    size_t at = 0;
    char gone[SILT_ID_MAX + 1];
    for (struct silt_image *i = silt_map_next(&r->snapshots, &at); i != NULL;
         i = silt_map_next(&r->snapshots, &at)) {
        if (!i->snapshot->automatic
            || silt_registry_find(r, silt_slice_of(i->snapshot->sandbox)) != NULL)
            continue;
        memcpy(gone, i->snapshot->sandbox, sizeof(gone));
        silt_snapshots_delete_automatic(r, gone);
        return; /* the map has changed; the next turn goes on */
    }
}

static int load(struct silt_registry *r, struct silt_error *e)
{
    return silt_store_each_history(r->store, load_row, r, e);
}

static void on_removed(struct silt_sandbox *s)
{
    if (s->row.id[0] != 0)
        silt_snapshots_delete_automatic(s->registry, s->row.id);
}

static void fini(struct silt_sandbox *s)
{
    silt_list_each(it, &s->history) free(silt_outer(it, struct silt_history, link));
    silt_list_init(&s->history);
    s->history_count = 0;
}

const struct silt_facet silt_undo_facet = {.load = load,
                                           .upkeep = sweep,
                                           .init = init,
                                           .on_removed = on_removed,
                                           .forget = fini,
                                           .fini = fini,
                                           .before_command = before_command,
                                           .after_command = after_command};
