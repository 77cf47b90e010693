/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/journal.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/json.h"
#include "sandbox/core/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLUSH_MS = 5,     /* events of this time are stored and reported together */
    TRIM_EVERY = 500, /* events stored between two deletions of old ones */
};

static const char *const names[SILT_EVENT_TYPE_MAX] = {
    [SILT_EVENT_CREATED] = "created",        [SILT_EVENT_STARTED] = "started",
    [SILT_EVENT_PAUSED] = "paused",          [SILT_EVENT_RESUMED] = "resumed",
    [SILT_EVENT_STOPPED] = "stopped",        [SILT_EVENT_DIED] = "died",
    [SILT_EVENT_SNAPSHOT] = "snapshot",      [SILT_EVENT_FORKED] = "forked",
    [SILT_EVENT_ROLLED_BACK] = "rolledBack", [SILT_EVENT_DESTROYED] = "destroyed",
    [SILT_EVENT_EXPOSED] = "exposed",        [SILT_EVENT_DENIED] = "denied",
    [SILT_EVENT_DISK_FULL] = "diskFull",
};

const char *silt_event_name(enum silt_event_type type)
{
    return names[type];
}

bool silt_event_find(silt_slice name, enum silt_event_type *ret)
{
    for (size_t i = 0; i < SILT_EVENT_TYPE_MAX; i++) {
        if (!silt_slice_eq(name, silt_slice_of(names[i])))
            continue;
        *ret = (enum silt_event_type)i;
        return true;
    }
    return false;
}

void silt_event_write(struct silt_buf *b, const struct silt_event_row *event)
{
    char text[32];
    silt_json_open(b, '{');
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)event->number);
    silt_json_add_text(b, "cursor", text);
    silt_json_add_text(b, "type", names[event->type]);
    silt_json_key(b, SILT_LIT("sandbox"));
    if (event->id[0] != 0)
        silt_json_string(b, silt_slice_of(event->id));
    else
        silt_json_null(b);
    silt_clock_iso(event->at_ms, text);
    silt_json_add_text(b, "at", text);
    size_t len = event->details != NULL ? strlen(event->details) : 0;
    if (len > 2) { /* without its braces */
        silt_buf_add_byte(b, ',');
        silt_buf_add(b, (silt_slice){event->details + 1, len - 2});
    }
    silt_json_close(b, '}');
}

/* ---- adding ---- */

static struct silt_event_row **place_of(struct silt_journal *j, uint64_t number)
{
    return &j->recent[number % SILT_EVENTS_RECENT];
}

static void drop(struct silt_event_row **at)
{
    if (*at != NULL)
        silt_event_row_fini(*at);
    free(*at);
    *at = NULL;
}

/* The oldest number in memory. */
static uint64_t floor_of(const struct silt_journal *j)
{
    return j->next - j->first > SILT_EVENTS_RECENT ? j->next - SILT_EVENTS_RECENT : j->first;
}

static int put_all(struct silt_journal *j, struct silt_error *e)
{
    struct silt_store *store = j->registry->store;
    if (silt_store_admit(store, e) < 0 || silt_store_begin(store, e) < 0)
        return -1;
    uint64_t floor = floor_of(j), from = j->unsaved < floor ? floor : j->unsaved;
    int done = 0;
    for (uint64_t n = from; n < j->next && done == 0; n++)
        done = silt_store_put_event(store, *place_of(j, n), e);
    j->untrimmed += j->next - from;
    if (done == 0 && j->untrimmed >= TRIM_EVERY) {
        done = silt_store_trim_events(store, SILT_EVENTS_KEPT, e);
        j->untrimmed = 0;
    }
    struct silt_error ignored;
    if (done < 0) {
        (void)silt_store_end(store, false, &ignored);
        return -1;
    }
    return silt_store_end(store, true, e);
}

static void store_all(struct silt_journal *j)
{
    struct silt_error e;
    if (j->unsaved == j->next)
        return;
    if (put_all(j, &e) < 0) {
        j->lost += j->next - j->unsaved;
        silt_log(SILT_LOG_WARN, "journal.unwritten", "events=%llu error=\"%s\"",
                 (unsigned long long)(j->next - j->unsaved), e.text);
    }
    j->unsaved = j->next;
}

static void on_flush(struct silt_timer *t)
{
    struct silt_journal *j = silt_outer(t, struct silt_journal, flush);
    store_all(j);
    silt_list_each(it, &j->readers)
    {
        struct silt_event_reader *reader = silt_outer(it, struct silt_event_reader, link);
        reader->on_news(reader);
    }
}

void silt_journal_add(struct silt_registry *r, const char *id, enum silt_event_type type,
                      silt_slice details)
{
    struct silt_journal *j = &r->journal;
    if (j->registry == NULL)
        return; /* siltd is exiting */
    struct silt_event_row *event = calloc(1, sizeof(*event));
    if (event == NULL)
        abort();
    bool has = details.len > 2 && details.len <= SILT_EVENT_DETAILS_MAX;
    assert(!has || (details.data[0] == '{' && details.data[details.len - 1] == '}'));
    *event = (struct silt_event_row){
        .number = j->next++,
        .at_ms = silt_clock_wall_ms(),
        .type = type,
        .details = has ? strndup(details.data, details.len) : NULL,
    };
    (void)snprintf(event->id, sizeof(event->id), "%s", id);
    struct silt_event_row **at = place_of(j, event->number);
    drop(at);
    *at = event;
    if (j->next - j->unsaved >= SILT_EVENTS_RECENT / 2)
        store_all(j); /* a burst within one turn */
    if (j->flush.place == 0)
        silt_loop_after(r->loop, &j->flush, FLUSH_MS);
}

/* ---- reading ---- */

void silt_journal_listen(struct silt_journal *j, struct silt_event_reader *reader)
{
    silt_list_append(&j->readers, &reader->link);
}

void silt_journal_leave(struct silt_event_reader *reader)
{
    silt_list_remove(&reader->link);
}

uint64_t silt_journal_last(const struct silt_journal *j)
{
    return j->next - 1;
}

bool silt_journal_has_lost(struct silt_journal *j, uint64_t after)
{
    struct silt_error e;
    uint64_t first = 0;
    if (after >= j->next)
        return true;
    if (after == 0 || after + 1 >= floor_of(j))
        return false;
    return silt_store_first_event(j->registry->store, &first, &e) < 0 || first == 0
           || after < first;
}

int silt_journal_read(struct silt_journal *j, uint64_t after,
                      void (*each)(void *context, const struct silt_event_row *event),
                      void *context, struct silt_error *e)
{
    int count = 0;
    uint64_t floor = floor_of(j);
    store_all(j); /* whoever has seen an event may come back for the next one after a crash */
    if (after + 1 < floor) {
        count = silt_store_each_event(j->registry->store, after, floor, SILT_EVENTS_PAGE, each,
                                      context, e);
        if (count != 0)
            return count;
        after = floor - 1;
    }
    for (uint64_t n = after + 1; n < j->next && count < SILT_EVENTS_PAGE; n++, count++)
        each(context, *place_of(j, n));
    return count;
}

/* ---- life ---- */

/* The numbers continue behind those of any earlier siltd, also if its store was lost: they begin
 * at the microseconds of the clock. */
int silt_journal_open(struct silt_journal *j, struct silt_registry *r, struct silt_error *e)
{
    uint64_t last = 0;
    uint64_t now_us = (uint64_t)silt_clock_wall_ms() * 1000;
    j->registry = r;
    j->flush = (struct silt_timer){.on_time = on_flush};
    silt_list_init(&j->readers);
    if (silt_store_last_event(r->store, &last, e) < 0)
        return -1;
    j->first = j->next = j->unsaved = last >= now_us ? last + 1 : now_us;
    return 0;
}

void silt_journal_close(struct silt_journal *j)
{
    if (j->registry == NULL)
        return;
    silt_loop_cancel(j->registry->loop, &j->flush);
    store_all(j);
    for (size_t i = 0; i < SILT_EVENTS_RECENT; i++)
        drop(&j->recent[i]);
    j->registry = NULL;
}
