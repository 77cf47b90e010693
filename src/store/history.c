/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

int silt_store_put_history(struct silt_store *s, const struct silt_history_row *r,
                           struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_HISTORY];
    int i = 1;
    (void)sqlite3_bind_int64(st, i++, r->slot);
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->number);
    (void)sqlite3_bind_text(st, i++, r->command, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(st, i++, r->at_ms);
    (void)sqlite3_bind_int(st, i++, r->ended);
    (void)sqlite3_bind_int(st, i++, r->exit_code);
    silt_db_bind_text(st, i++, r->snapshot);
    silt_db_bind_text(st, i++, r->problem);
    return silt_db_add(s, st, e, "remember a command");
}

int silt_store_remove_history(struct silt_store *s, const struct silt_history_row *r,
                              struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_HISTORY];
    (void)sqlite3_bind_int64(st, 1, r->slot);
    (void)sqlite3_bind_int64(st, 2, (int64_t)r->number);
    return silt_db_finish(s, st, e, "forget a command");
}

static void read_row(sqlite3_stmt *st, struct silt_history_row *r)
{
    int i = 0;
    r->slot = (uint32_t)sqlite3_column_int64(st, i++);
    r->number = (uint64_t)sqlite3_column_int64(st, i++);
    silt_db_column_text(st, i++, r->command, sizeof(r->command));
    r->at_ms = sqlite3_column_int64(st, i++);
    r->ended = sqlite3_column_int(st, i++) != 0;
    r->exit_code = sqlite3_column_int(st, i++);
    silt_db_column_text(st, i++, r->snapshot, sizeof(r->snapshot));
    silt_db_column_text(st, i++, r->problem, sizeof(r->problem));
}

int silt_store_each_history(struct silt_store *s,
                            void (*each)(void *context, const struct silt_history_row *row),
                            void *context, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_HISTORY];
    int rc;
    if (silt_db_sweep(s, "DELETE FROM history WHERE slot NOT IN (SELECT slot FROM sandbox)", e,
                      "forget commands")
        < 0)
        return -1;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct silt_history_row row = {0};
        read_row(st, &row);
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read commands");
}
