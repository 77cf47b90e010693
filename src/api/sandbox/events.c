/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/events: what happens to the sandboxes, as server-sent events. Every event has a cursor;
 * a client that comes back with the last one it saw misses nothing that is still kept. A slow
 * reader holds nothing back: it gets the events from the journal when it reads again. */
#include "api/core/api.h"
#include "api/core/sse.h"
#include "sandbox/core/sandbox.h"

#include <stdlib.h>

enum {
    FOLLOWERS_MAX = 64,
    EVENT_MAX = SILT_EVENT_DETAILS_MAX + 1024,
    PAGES_AT_ONCE = 8, /* of the journal, per loop turn and stream */
};

struct follower {
    struct silt_event_reader reader;
    struct silt_sse sse;
    struct silt_link link; /* in api->followers */
    struct silt_api *api;
    struct silt_timer more; /* there are more pages than fit one turn */
    uint64_t cursor;
    uint32_t types;           /* bit set; 0: all */
    bool brief;               /* ends with the newest event */
    char id[SILT_ID_MAX + 1]; /* only this sandbox; empty: all */
};

static void free_follower(struct follower *f)
{
    silt_journal_leave(&f->reader);
    silt_loop_cancel(f->sse.loop, &f->more);
    silt_list_remove(&f->link);
    free(f);
}

static void on_gone(struct silt_http_request *r)
{
    struct follower *f = r->owner;
    (void)silt_sse_fini(&f->sse);
    free_follower(f);
}

static bool is_chosen(const struct follower *f, const struct silt_event_row *event)
{
    return (f->types == 0 || (f->types >> event->type & 1) != 0)
           && (f->id[0] == 0 || strcmp(f->id, event->id) == 0);
}

static bool has_room(const struct follower *f)
{
    return silt_http_pending(f->sse.request) < SILT_HTTP_MARK;
}

static void begin_event(struct silt_buf *b, uint64_t cursor, const char *type)
{
    silt_buf_addf(b, "id: %llu\nevent: %s\ndata: ", (unsigned long long)cursor, type);
}

static void on_event(void *context, const struct silt_event_row *event)
{
    struct follower *f = context;
    if (!has_room(f))
        return;
    f->cursor = event->number;
    if (!is_chosen(f, event))
        return;
    silt_auto_buf b, json;
    silt_buf_init(&b, EVENT_MAX);
    silt_buf_init(&json, EVENT_MAX);
    silt_event_write(&json, event);
    begin_event(&b, event->number, silt_event_name(event->type));
    silt_buf_add(&b, silt_buf_slice(&json));
    silt_sse_send_raw(&f->sse, &b);
}

/* Events behind this cursor are gone: the stream goes on with the oldest that is kept. */
static void say_missed(struct follower *f)
{
    silt_auto_buf b;
    silt_buf_init(&b, EVENT_MAX);
    silt_sse_open(&b, "missed");
    silt_json_add_text(&b, "message", "events behind this cursor are no longer kept");
    silt_sse_send(&f->sse, &b);
}

static void end(struct follower *f)
{
    silt_http_end(silt_sse_fini(&f->sse));
    free_follower(f);
}

static void pump(struct follower *f)
{
    struct silt_journal *j = &f->api->registry->journal;
    struct silt_error e;
    for (int i = 0; i < PAGES_AT_ONCE && has_room(f); i++) {
        if (silt_journal_read(j, f->cursor, on_event, f, &e) > 0)
            continue;
        if (f->brief)
            end(f);
        return;
    }
    if (has_room(f))
        silt_loop_after(f->sse.loop, &f->more, 0);
}

static void on_news(struct silt_event_reader *reader)
{
    pump(silt_outer(reader, struct follower, reader));
}

static void on_more(struct silt_timer *t)
{
    pump(silt_outer(t, struct follower, more));
}

static void on_drain(struct silt_http_request *r)
{
    pump(r->owner);
}

static void on_halved(struct silt_http_request *r)
{
    struct follower *f = r->owner;
    silt_sse_probe(&f->sse);
}

void silt_api_stop_followers(struct silt_api *api)
{
    silt_list_each(it, &api->followers)
    {
        end(silt_outer(it, struct follower, link));
    }
}

/* ---- the request ---- */

static bool read_types(struct silt_http_request *r, struct follower *f)
{
    silt_slice rest = {NULL, 0}, name;
    silt_slice raw = silt_query(r, SILT_LIT("types"));
    if (raw.len > 0 && !silt_query_decode(r, raw, &rest))
        return false;
    while (rest.len > 0 && silt_slice_split(&rest, ',', &name)) {
        enum silt_event_type type;
        if (!silt_event_find(name, &type)) {
            silt_api_refuse_field(r, "types",
                                  "must be of created, started, paused, resumed, stopped, died, "
                                  "snapshot, forked, rolledBack, destroyed, exposed, denied and "
                                  "diskFull, separated by commas");
            return false;
        }
        f->types |= 1U << type;
    }
    return true;
}

static bool read_sandbox(struct silt_http_request *r, struct follower *f)
{
    struct silt_error e;
    silt_slice id = silt_query(r, SILT_LIT("sandbox"));
    if (id.len == 0)
        return true;
    if (silt_id_check(id, &e) < 0) {
        silt_api_refuse_field(r, "sandbox", e.text);
        return false;
    }
    memcpy(f->id, id.data, id.len);
    return true;
}

/* `cursor` in the query, else what a browser sends when it connects again; else only new events. */
static bool read_cursor(struct silt_http_request *r, struct follower *f)
{
    struct silt_error e;
    silt_slice text = silt_query(r, SILT_LIT("cursor"));
    if (text.len == 0)
        text = silt_http_field(r->head, SILT_LIT("last-event-id"));
    f->cursor = silt_journal_last(&f->api->registry->journal);
    if (text.len == 0 || silt_slice_to_u64(text, 0, INT64_MAX, &f->cursor, &e) == 0)
        return true;
    silt_api_refuse_field(r, "cursor",
                          "must be the cursor of an event, or 0 for all that are kept");
    return false;
}

static bool read_follow(struct silt_http_request *r, struct follower *f)
{
    silt_slice text = silt_query(r, SILT_LIT("follow"));
    f->brief = silt_slice_eq(text, SILT_LIT("false"));
    if (text.len == 0 || f->brief || silt_slice_eq(text, SILT_LIT("true")))
        return true;
    silt_api_refuse_field(r, "follow", "must be true or false");
    return false;
}

static void begin(struct follower *f)
{
    struct silt_journal *j = &f->api->registry->journal;
    silt_sse_begin(&f->sse);
    if (silt_journal_has_lost(j, f->cursor)) {
        f->cursor = f->cursor > silt_journal_last(j) ? silt_journal_last(j) : 0;
        say_missed(f);
    }
    silt_journal_listen(j, &f->reader);
    pump(f);
}

SILT_HANDLER(silt_api_events)
{
    struct silt_api *api = silt_api_of(r);
    size_t count = 0;
    (void)args;
    silt_list_each(it, &api->followers) count++;
    if (count >= FOLLOWERS_MAX) {
        silt_api_refuse(r, SILT_API_LIMIT_REACHED, (silt_slice){NULL, 0},
                        "%d clients follow the events already", FOLLOWERS_MAX);
        return;
    }
    struct follower *f = calloc(1, sizeof(*f));
    if (f == NULL)
        abort();
    f->api = api;
    f->reader.on_news = on_news;
    f->more.on_time = on_more;
    silt_list_init(&f->reader.link);
    if (!read_types(r, f) || !read_sandbox(r, f) || !read_cursor(r, f) || !read_follow(r, f)) {
        free(f);
        return;
    }
    silt_sse_init(&f->sse, api->loop, r);
    if (silt_api_is_head(r)) {
        silt_sse_begin(&f->sse);
        silt_http_end(silt_sse_fini(&f->sse));
        free(f);
        return;
    }
    silt_list_append(&api->followers, &f->link);
    r->owner = f;
    r->on_gone = on_gone;
    r->on_drain = on_drain;
    r->on_halved = on_halved;
    begin(f);
}
