/* SPDX-License-Identifier: Apache-2.0 */
/* journal: what happened to the sandboxes, in order, for `GET /v1/events` and webhooks. The newest
 * events are in memory and all that are kept in the store, where they outlive siltd. The registry
 * owns it; it runs in siltd's loop. An event that a full disk refuses is lost with this siltd. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "event/loop.h"
#include "store/store.h"

struct silt_registry;

enum {
    SILT_EVENT_DETAILS_MAX = 4096,
    SILT_EVENTS_RECENT = 1024, /* in memory */
    SILT_EVENTS_KEPT = 10000,  /* in the store */
    SILT_EVENTS_PAGE = 256,    /* read at once */
};

/* Waits for news. */
struct silt_event_reader {
    struct silt_link link;
    void (*on_news)(struct silt_event_reader *reader);
};

struct silt_journal {
    struct silt_registry *registry;                    /* borrowed */
    struct silt_event_row *recent[SILT_EVENTS_RECENT]; /* owned; at number % SILT_EVENTS_RECENT */
    uint64_t first;                                    /* number of the first event of this siltd */
    uint64_t next;                                     /* number of the next event */
    uint64_t unsaved;   /* number of the first event that is not in the store yet */
    uint64_t untrimmed; /* events stored since old ones were deleted */
    uint64_t lost;      /* refused by the store */
    struct silt_timer flush;
    struct silt_link readers;
};

int silt_journal_open(struct silt_journal *j, struct silt_registry *r, struct silt_error *e);
void silt_journal_close(struct silt_journal *j); /* stores the rest and frees everything */

/* Adds an event. `id`: of the sandbox, or "" for one about all of them. `details`: a JSON object
 * whose members become members of the event, or empty; dropped if longer than
 * SILT_EVENT_DETAILS_MAX. Its members must not be called cursor, type, sandbox or at. */
void silt_journal_add(struct silt_registry *r, const char *id, enum silt_event_type type,
                      silt_slice details);
const char *silt_event_name(enum silt_event_type type);
bool silt_event_find(silt_slice name, enum silt_event_type *ret);
/* The event as a JSON object. */
void silt_event_write(struct silt_buf *b, const struct silt_event_row *event);

void silt_journal_listen(struct silt_journal *j, struct silt_event_reader *reader);
void silt_journal_leave(struct silt_event_reader *reader);
/* Calls `each` with at most SILT_EVENTS_PAGE events behind the cursor, oldest first. Returns their
 * number, or -1. */
int silt_journal_read(struct silt_journal *j, uint64_t after,
                      void (*each)(void *context, const struct silt_event_row *event),
                      void *context, struct silt_error *e);
/* The cursor of the newest event. */
uint64_t silt_journal_last(const struct silt_journal *j);
/* True if events behind this cursor are no longer kept, or the cursor is of another store. */
bool silt_journal_has_lost(struct silt_journal *j, uint64_t after);
