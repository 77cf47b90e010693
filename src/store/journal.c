/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <stdlib.h>

void silt_event_row_fini(struct silt_event_row *r)
{
    free(r->details);
    r->details = NULL;
}

int silt_store_put_event(struct silt_store *s, const struct silt_event_row *r, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_EVENT];
    int i = 1;
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->number);
    (void)sqlite3_bind_int64(st, i++, r->at_ms);
    (void)sqlite3_bind_int(st, i++, (int)r->type);
    silt_db_bind_text(st, i++, r->id);
    silt_db_bind_text(st, i++, r->details);
    return silt_db_finish(s, st, e, "store event");
}

int silt_store_trim_events(struct silt_store *s, uint32_t kept, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_TRIM_EVENTS];
    (void)sqlite3_bind_int64(st, 1, kept);
    return silt_db_finish(s, st, e, "forget old events");
}

/* 0 if there are none. */
static int read_number(struct silt_store *s, enum silt_db_statement which, uint64_t *ret,
                       struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[which];
    int rc = sqlite3_step(st);
    *ret = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
    (void)sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read events");
}

int silt_store_first_event(struct silt_store *s, uint64_t *ret, struct silt_error *e)
{
    return read_number(s, SILT_DB_FIRST_EVENT, ret, e);
}

int silt_store_last_event(struct silt_store *s, uint64_t *ret, struct silt_error *e)
{
    return read_number(s, SILT_DB_LAST_EVENT, ret, e);
}

int silt_store_each_event(struct silt_store *s, uint64_t after, uint64_t before, uint32_t most,
                          void (*each)(void *context, const struct silt_event_row *row),
                          void *context, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_EVENT];
    int rc, count = 0;
    (void)sqlite3_bind_int64(st, 1, (int64_t)after);
    (void)sqlite3_bind_int64(st, 2, (int64_t)before);
    (void)sqlite3_bind_int64(st, 3, most);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        size_t len;
        struct silt_event_row row = {
            .number = (uint64_t)sqlite3_column_int64(st, 0),
            .at_ms = sqlite3_column_int64(st, 1),
            .type = (enum silt_event_type)sqlite3_column_int(st, 2),
        };
        silt_db_column_text(st, 3, row.id, sizeof(row.id));
        row.details = silt_db_column_dup(st, 4, &len);
        if (row.type < SILT_EVENT_TYPE_MAX) {
            each(context, &row);
            count++;
        }
        silt_event_row_fini(&row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? count : silt_db_fail(s->db, e, "read events");
}
