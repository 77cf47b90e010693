/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <stdlib.h>

void silt_snapshot_row_fini(struct silt_snapshot_row *r)
{
    free(r->name);
    free(r->record);
    r->name = NULL;
    r->record = NULL;
}

int silt_store_put_snapshot(struct silt_store *s, const struct silt_snapshot_row *r,
                            struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_SNAPSHOT];
    int i = 1;
    (void)sqlite3_bind_text(st, i++, r->id, -1, SQLITE_STATIC);
    (void)sqlite3_bind_blob(st, i++, r->digest, SILT_DIGEST_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, i++, r->sandbox, -1, SQLITE_STATIC);
    silt_db_bind_text(st, i++, r->name);
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->bytes);
    (void)sqlite3_bind_int64(st, i++, r->created_ms);
    (void)sqlite3_bind_int64(st, i++, r->expires_ms);
    (void)sqlite3_bind_blob64(st, i++, r->record, r->record_len, SQLITE_STATIC);
    (void)sqlite3_bind_int(st, i++, r->automatic);
    return silt_db_add(s, st, e, "remember snapshot");
}

int silt_store_remove_snapshot(struct silt_store *s, const char *id, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_SNAPSHOT];
    (void)sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
    return silt_db_finish(s, st, e, "forget snapshot");
}

static void read_snapshot(sqlite3_stmt *st, struct silt_snapshot_row *r)
{
    size_t name_len;
    int i = 0;
    silt_db_column_text(st, i++, r->id, sizeof(r->id));
    silt_db_column_digest(st, i++, r->digest);
    silt_db_column_text(st, i++, r->sandbox, sizeof(r->sandbox));
    r->name = silt_db_column_dup(st, i++, &name_len);
    r->bytes = (uint64_t)sqlite3_column_int64(st, i++);
    r->created_ms = sqlite3_column_int64(st, i++);
    r->expires_ms = sqlite3_column_int64(st, i++);
    r->record = silt_db_column_dup(st, i++, &r->record_len);
    r->automatic = sqlite3_column_int(st, i++) != 0;
}

int silt_store_each_snapshot(struct silt_store *s,
                             void (*each)(void *context, struct silt_snapshot_row *row),
                             void *context, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_SNAPSHOT];
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct silt_snapshot_row row = {0};
        read_snapshot(st, &row);
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read snapshots");
}
