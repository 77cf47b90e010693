/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of the database and of the machine it was used on. */
#include "store/db.h"

#include <stdio.h>

int silt_store_rebooted(struct silt_store *s, const char *boot_id, bool *ret, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_GET_META];
    char before[64] = "";
    (void)sqlite3_bind_text(st, 1, "boot_id", -1, SQLITE_STATIC);
    if (sqlite3_step(st) == SQLITE_ROW)
        silt_db_column_text(st, 0, before, sizeof(before));
    (void)sqlite3_reset(st);
    *ret = before[0] != 0 && strcmp(before, boot_id) != 0;
    st = s->statements[SILT_DB_PUT_META];
    (void)sqlite3_bind_text(st, 1, "boot_id", -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, 2, boot_id, -1, SQLITE_STATIC);
    return silt_db_finish(s, st, e, "remember boot") == 0 || silt_db_is_full(s, e) ? 0 : -1;
}

int silt_store_start_time(struct silt_store *s, int64_t wall_ms, int64_t *ret_ms,
                          struct silt_error *e)
{
    enum {
        LATER_MS = 86400000
    }; /* each millisecond yields only so many numbers, and we do not know how many were used */
    sqlite3_stmt *st = s->statements[SILT_DB_GET_META];
    int64_t before_ms = 0;
    char text[24];
    (void)sqlite3_bind_text(st, 1, "started_ms", -1, SQLITE_STATIC);
    if (sqlite3_step(st) == SQLITE_ROW)
        before_ms = sqlite3_column_int64(st, 0);
    (void)sqlite3_reset(st);
    *ret_ms = wall_ms > before_ms ? wall_ms : before_ms + LATER_MS;
    (void)snprintf(text, sizeof(text), "%lld", (long long)*ret_ms);
    st = s->statements[SILT_DB_PUT_META];
    (void)sqlite3_bind_text(st, 1, "started_ms", -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, 2, text, -1, SQLITE_TRANSIENT);
    return silt_db_finish(s, st, e, "remember the start") == 0 || silt_db_is_full(s, e) ? 0 : -1;
}

int silt_store_records(struct silt_store *s, enum silt_store_records *ret, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_GET_META];
    (void)sqlite3_bind_text(st, 1, "records", -1, SQLITE_STATIC);
    bool found = sqlite3_step(st) == SQLITE_ROW;
    int state = found ? sqlite3_column_int(st, 0) : SILT_RECORDS_UNREAD;
    (void)sqlite3_reset(st);
    if (!found || state < 0 || state >= SILT_RECORDS_MAX)
        return silt_fail(e, SILT_INTERNAL,
                         "the store does not say what became of the recovery records");
    *ret = (enum silt_store_records)state;
    return 0;
}

int silt_store_set_records(struct silt_store *s, enum silt_store_records state,
                           struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_META];
    (void)sqlite3_bind_text(st, 1, "records", -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(st, 2, (int)state);
    return silt_db_finish(s, st, e, "remember the state of the recovery records");
}

int silt_store_begin(struct silt_store *s, struct silt_error *e)
{
    return sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : silt_db_fail(s->db, e, "begin");
}

int silt_store_end(struct silt_store *s, bool commit, struct silt_error *e)
{
    const char *text = commit ? "COMMIT" : "ROLLBACK";
    return sqlite3_exec(s->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                    : silt_db_fail(s->db, e, text);
}
