/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <stdlib.h>

void silt_volume_row_fini(struct silt_volume_row *r)
{
    free(r->name);
    free(r->labels);
    r->name = r->labels = NULL;
}

int silt_store_put_volume(struct silt_store *s, const struct silt_volume_row *r,
                          struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_VOLUME];
    (void)sqlite3_bind_text(st, 1, r->name, -1, SQLITE_STATIC);
    silt_db_bind_text(st, 2, r->labels);
    (void)sqlite3_bind_int64(st, 3, r->created_ms);
    return silt_db_add(s, st, e, "remember volume");
}

int silt_store_remove_volume(struct silt_store *s, const char *name, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_VOLUME];
    (void)sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    return silt_db_finish(s, st, e, "forget volume");
}

int silt_store_each_volume(struct silt_store *s, void (*each)(void *, struct silt_volume_row *),
                           void *context, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_VOLUME];
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct silt_volume_row row = {0};
        size_t len;
        row.name = silt_db_column_dup(st, 0, &len);
        row.labels = silt_db_column_dup(st, 1, &len);
        row.created_ms = sqlite3_column_int64(st, 2);
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read volumes");
}
