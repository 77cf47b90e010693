/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <stdlib.h>

void silt_capture_row_fini(struct silt_capture_row *r)
{
    free(r->hostnames);
    free(r->certificate);
    free(r->key);
    r->hostnames = r->certificate = r->key = NULL;
}

int silt_store_put_capture(struct silt_store *s, const struct silt_capture_row *r,
                           struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_CAPTURE];
    int i = 1;
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->number);
    (void)sqlite3_bind_int(st, i++, r->port);
    (void)sqlite3_bind_int(st, i++, r->internet);
    silt_db_bind_text(st, i++, r->hostnames);
    silt_db_bind_text(st, i++, r->certificate);
    silt_db_bind_text(st, i++, r->key);
    return silt_db_finish(s, st, e, "remember capture");
}

int silt_store_remove_capture(struct silt_store *s, uint64_t number, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_CAPTURE];
    (void)sqlite3_bind_int64(st, 1, (int64_t)number);
    return silt_db_finish(s, st, e, "forget capture");
}

int silt_store_each_capture(struct silt_store *s, void (*each)(void *, struct silt_capture_row *),
                            void *context, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_CAPTURE];
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct silt_capture_row row = {.number = (uint64_t)sqlite3_column_int64(st, 0),
                                       .port = (uint16_t)sqlite3_column_int(st, 1),
                                       .internet = sqlite3_column_int(st, 2) != 0};
        size_t len;
        row.hostnames = silt_db_column_dup(st, 3, &len);
        row.certificate = silt_db_column_dup(st, 4, &len);
        row.key = silt_db_column_dup(st, 5, &len);
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read captures");
}
