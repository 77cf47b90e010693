/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/context/run_log.h"
#include "base/id.h"
#include "sandbox/core/facet.h"

#include <stdio.h>
#include <stdlib.h>

enum { ID_RANDOM = 20 };

struct event {
    struct silt_link link;
    size_t len;
    char bytes[];
};

struct silt_run_log {
    struct silt_link link; /* in the sandbox, oldest first */
    struct silt_link all;  /* in the registry: ended ones by end, after those that still run */
    struct silt_sandbox *sandbox;     /* borrowed */
    struct silt_code_run *run;        /* borrowed; NULL: ended */
    struct silt_run_log_owner *owner; /* borrowed; NULL: ended */
    bool attended;                    /* its client is there */
    int64_t ended_ms;
    struct silt_link events;
    uint64_t first, next; /* numbers of the oldest event kept, and of the next one */
    size_t bytes;
    struct silt_link readers;
    size_t reader_count;
    char id[SILT_RUN_ID_SIZE], context[SILT_CONTEXT_ID_SIZE];
};

static void count(struct silt_run_log *l, size_t more, size_t less)
{
    l->bytes += more - less;
    l->sandbox->run_log_bytes += more - less;
    l->sandbox->registry->run_log_bytes += more - less;
}

static void drop_oldest(struct silt_run_log *l)
{
    struct event *x = silt_outer(l->events.next, struct event, link);
    silt_list_remove(&x->link);
    count(l, 0, sizeof(*x) + x->len);
    l->first++;
    free(x);
}

static void free_log(struct silt_run_log *l)
{
    while (!silt_list_empty(&l->events))
        drop_oldest(l);
    count(l, 0, sizeof(*l));
    silt_list_remove(&l->link);
    silt_list_remove(&l->all);
    free(l);
}

static bool is_spare(const struct silt_run_log *l)
{
    return l->run == NULL && l->reader_count == 0;
}

static bool drop_ended_of(struct silt_sandbox *s)
{
    silt_list_each(it, &s->run_logs)
    {
        struct silt_run_log *l = silt_outer(it, struct silt_run_log, link);
        if (is_spare(l)) {
            free_log(l);
            return true;
        }
    }
    return false;
}

static bool drop_ended(struct silt_registry *r)
{
    silt_list_each(it, &r->run_logs)
    {
        struct silt_run_log *l = silt_outer(it, struct silt_run_log, all);
        if (is_spare(l)) {
            free_log(l);
            return true;
        }
    }
    return false;
}

/* Frees room for `more` bytes in `l`. False: there is none, even after its own events are gone. */
static bool make_room(struct silt_run_log *l, size_t more)
{
    struct silt_sandbox *s = l->sandbox;
    struct silt_registry *r = s->registry;
    if (more > SILT_RUN_LOG_MAX)
        return false;
    while (l->bytes + more > SILT_RUN_LOG_MAX && !silt_list_empty(&l->events))
        drop_oldest(l);
    while (s->run_log_bytes + more > SILT_RUN_LOGS_EACH_MAX && drop_ended_of(s)) {
    }
    while (r->run_log_bytes + more > SILT_RUN_LOGS_MAX && drop_ended(r)) {
    }
    while ((s->run_log_bytes + more > SILT_RUN_LOGS_EACH_MAX
            || r->run_log_bytes + more > SILT_RUN_LOGS_MAX)
           && !silt_list_empty(&l->events))
        drop_oldest(l);
    return s->run_log_bytes + more <= SILT_RUN_LOGS_EACH_MAX
           && r->run_log_bytes + more <= SILT_RUN_LOGS_MAX;
}

struct silt_run_log *silt_run_log_new(struct silt_context *c, struct silt_code_run *run,
                                      struct silt_run_log_owner *owner)
{
    struct silt_run_log *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    *l = (struct silt_run_log){
        .sandbox = c->sandbox, .run = run, .owner = owner, .attended = true, .first = 1, .next = 1};
    memcpy(l->id, "run-", 4);
    silt_id_random(l->id + 4, ID_RANDOM);
    memcpy(l->context, c->row.id, sizeof(l->context));
    silt_list_init(&l->events);
    silt_list_init(&l->readers);
    silt_list_append(&c->sandbox->run_logs, &l->link);
    silt_list_append(&c->sandbox->registry->run_logs, &l->all);
    count(l, sizeof(*l), 0);
    return l;
}

const char *silt_run_log_id(const struct silt_run_log *l)
{
    return l->id;
}

struct silt_run_log *silt_run_log_find(struct silt_sandbox *s, silt_slice context, silt_slice run)
{
    silt_list_each(it, &s->run_logs)
    {
        struct silt_run_log *l = silt_outer(it, struct silt_run_log, link);
        if (silt_slice_eq(silt_slice_of(l->id), run)
            && silt_slice_eq(silt_slice_of(l->context), context))
            return l;
    }
    return NULL;
}

uint64_t silt_run_log_last(const struct silt_run_log *l)
{
    return l->next - 1;
}

static void wake_readers(struct silt_run_log *l)
{
    silt_list_each(it, &l->readers)
    {
        struct silt_run_reader *r = silt_outer(it, struct silt_run_reader, link);
        r->on_more(r);
    }
}

void silt_run_log_add(struct silt_run_log *l, silt_slice bytes)
{
    struct event *x = NULL;
    if (make_room(l, sizeof(*x) + bytes.len))
        x = malloc(sizeof(*x) + bytes.len);
    l->next++;
    if (x != NULL) {
        x->len = bytes.len;
        memcpy(x->bytes, bytes.data, bytes.len);
        silt_list_append(&l->events, &x->link);
        count(l, sizeof(*x) + bytes.len, 0);
    } else { /* a gap would split it: nothing before it is kept either */
        while (!silt_list_empty(&l->events))
            drop_oldest(l);
        l->first = l->next;
    }
    wake_readers(l);
}

bool silt_run_log_is_read(const struct silt_run_log *l)
{
    return l->attended || l->reader_count > 0;
}

bool silt_run_log_is_behind(const struct silt_run_log *l)
{
    silt_list_each(it, &l->readers)
    {
        if (silt_outer(it, struct silt_run_reader, link)->next < l->next)
            return true;
    }
    return false;
}

static void go_on(struct silt_run_log *l)
{
    if (l->run == NULL)
        return;
    if (!silt_run_log_is_read(l))
        (void)silt_code_run_answer(l->run, (silt_slice){NULL, 0}); /* no client can answer */
    silt_code_run_resume(l->run);
}

void silt_run_log_leave(struct silt_run_log *l)
{
    l->attended = false;
    go_on(l);
}

void silt_run_log_end(struct silt_run_log *l)
{
    l->run = NULL;
    l->owner = NULL;
    l->attended = false;
    l->ended_ms = l->sandbox->registry->loop->now_ms;
    silt_list_remove(&l->all);
    silt_list_append(&l->sandbox->registry->run_logs, &l->all);
    wake_readers(l);
}

/* ---- readers ---- */

int silt_run_reader_init(struct silt_run_reader *r, struct silt_run_log *l, uint64_t cursor,
                         struct silt_error *e)
{
    if (cursor >= l->next)
        return silt_fail(e, SILT_INVALID, "no event of this run has the cursor %llu",
                         (unsigned long long)cursor);
    if (l->reader_count >= SILT_RUN_READERS_MAX)
        return silt_fail(e, SILT_LIMIT, "run %s has %d readers already", l->id,
                         SILT_RUN_READERS_MAX);
    r->log = l;
    r->next = cursor + 1;
    r->at = NULL;
    silt_list_init(&r->link);
    silt_list_append(&l->readers, &r->link);
    l->reader_count++;
    return 0;
}

static struct event *find_event(struct silt_run_log *l, uint64_t number)
{
    struct silt_link *it = l->events.next;
    for (uint64_t i = l->first; i < number; i++)
        it = it->next;
    return silt_outer(it, struct event, link);
}

bool silt_run_reader_next(struct silt_run_reader *r, silt_slice *ret, uint64_t *ret_lost)
{
    struct silt_run_log *l = r->log;
    if (r->next >= l->next)
        return false;
    *ret = (silt_slice){NULL, 0};
    *ret_lost = r->next < l->first ? l->first - r->next : 0;
    if (*ret_lost > 0) {
        r->next = l->first;
        return true;
    }
    struct event *x = r->at != NULL && r->next > l->first
                          ? silt_outer(r->at->next, struct event, link)
                          : find_event(l, r->next);
    r->at = &x->link;
    r->next++;
    *ret = (silt_slice){x->bytes, x->len};
    return true;
}

bool silt_run_reader_is_done(const struct silt_run_reader *r)
{
    return r->log->run == NULL && r->next == r->log->next;
}

bool silt_run_reader_is_ended(const struct silt_run_reader *r)
{
    return r->log->run == NULL;
}

void silt_run_reader_resume(struct silt_run_reader *r)
{
    if (r->log->run != NULL && !silt_run_log_is_behind(r->log))
        silt_code_run_resume(r->log->run);
}

void silt_run_reader_leave(struct silt_run_reader *r)
{
    silt_list_remove(&r->link);
    r->log->reader_count--;
    go_on(r->log);
}

/* ---- the facet ---- */

static void open_registry(struct silt_registry *r)
{
    silt_list_init(&r->run_logs);
}

static void init(struct silt_sandbox *s)
{
    silt_list_init(&s->run_logs);
}

static void upkeep(struct silt_registry *r)
{
    int64_t now_ms = r->loop->now_ms;
    silt_list_each(it, &r->run_logs)
    {
        struct silt_run_log *l = silt_outer(it, struct silt_run_log, all);
        if (is_spare(l) && now_ms - l->ended_ms >= SILT_RUN_LOG_KEPT_MS)
            free_log(l);
    }
}

static void fini(struct silt_sandbox *s)
{
    silt_list_each(it, &s->run_logs)
    {
        struct silt_run_log *l = silt_outer(it, struct silt_run_log, link);
        if (l->owner != NULL)
            l->owner->forget(l->owner);
        free_log(l);
    }
}

const struct silt_facet silt_run_log_facet = {
    .open = open_registry, .init = init, .upkeep = upkeep, .fini = fini};
