/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <stdlib.h>

int silt_store_put_session(struct silt_store *s, const struct silt_session_row *r,
                           struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_SESSION];
    int i = 1;
    (void)sqlite3_bind_int64(st, i++, r->slot);
    (void)sqlite3_bind_text(st, i++, r->name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(st, i++, r->version);
    (void)sqlite3_bind_int64(st, i++, r->timeout_ms);
    silt_db_bind_text(st, i++, r->cwd);
    if (r->env_len > 0)
        (void)sqlite3_bind_blob(st, i, r->env, (int)r->env_len, SQLITE_STATIC);
    return silt_db_finish(s, st, e, "store session");
}

int silt_store_remove_session(struct silt_store *s, const struct silt_session_row *r,
                              struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_SESSION];
    (void)sqlite3_bind_int64(st, 1, r->slot);
    (void)sqlite3_bind_text(st, 2, r->name, -1, SQLITE_STATIC);
    return silt_db_finish(s, st, e, "forget session");
}

int silt_store_each_session(struct silt_store *s,
                            void (*each)(void *, const struct silt_session_row *), void *context,
                            struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_SESSION];
    int rc;
    if (silt_db_sweep(s, "DELETE FROM session WHERE slot NOT IN (SELECT slot FROM sandbox)", e,
                      "forget sessions")
        < 0)
        return -1;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(st, 1);
        struct silt_session_row row = {
            .slot = (uint32_t)sqlite3_column_int64(st, 0),
            .name = name != NULL ? name : "",
            .version = sqlite3_column_int(st, 2),
            .timeout_ms = (uint32_t)sqlite3_column_int64(st, 3),
            .cwd = (const char *)sqlite3_column_text(st, 4),
            .env = sqlite3_column_blob(st, 5),
            .env_len = (size_t)sqlite3_column_bytes(st, 5),
        };
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read sessions");
}
