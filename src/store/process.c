/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <stdlib.h>

void silt_process_row_fini(struct silt_process_row *r)
{
    free(r->command);
    free(r->session);
    free(r->remark);
    r->command = r->session = r->remark = NULL;
}

int silt_store_put_process(struct silt_store *s, const struct silt_process_row *r,
                           struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_PROCESS];
    int i = 1;
    (void)sqlite3_bind_int64(st, i++, r->slot);
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->number);
    (void)sqlite3_bind_text(st, i++, r->id, -1, SQLITE_STATIC);
    silt_db_bind_text(st, i++, r->command);
    silt_db_bind_text(st, i++, r->session);
    silt_db_bind_text(st, i++, r->remark);
    (void)sqlite3_bind_int(st, i++, (int)r->status);
    (void)sqlite3_bind_int(st, i++, r->auto_cleanup);
    (void)sqlite3_bind_int(st, i++, r->pid);
    (void)sqlite3_bind_int(st, i++, r->exit_code);
    (void)sqlite3_bind_int(st, i++, r->signal);
    (void)sqlite3_bind_int64(st, i++, r->started_ms);
    (void)sqlite3_bind_int64(st, i++, r->ended_ms);
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->log_bytes);
    silt_db_bind_text(st, i++, r->cause);
    return silt_db_finish(s, st, e, "remember process");
}

int silt_store_remove_process(struct silt_store *s, const struct silt_process_row *r,
                              struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_PROCESS];
    (void)sqlite3_bind_int64(st, 1, r->slot);
    (void)sqlite3_bind_int64(st, 2, (int64_t)r->number);
    return silt_db_finish(s, st, e, "forget process");
}

static void read_process(sqlite3_stmt *st, struct silt_process_row *r)
{
    size_t len;
    int i = 0;
    r->slot = (uint32_t)sqlite3_column_int64(st, i++);
    r->number = (uint64_t)sqlite3_column_int64(st, i++);
    silt_db_column_text(st, i++, r->id, sizeof(r->id));
    r->command = silt_db_column_dup(st, i++, &len);
    r->session = silt_db_column_dup(st, i++, &len);
    r->remark = silt_db_column_dup(st, i++, &len);
    unsigned status = (unsigned)sqlite3_column_int(st, i++);
    r->status =
        status < SILT_PROCESS_STATUS_MAX ? (enum silt_process_status)status : SILT_PROCESS_ERROR;
    r->auto_cleanup = sqlite3_column_int(st, i++) != 0;
    r->pid = sqlite3_column_int(st, i++);
    r->exit_code = sqlite3_column_int(st, i++);
    r->signal = sqlite3_column_int(st, i++);
    r->started_ms = sqlite3_column_int64(st, i++);
    r->ended_ms = sqlite3_column_int64(st, i++);
    r->log_bytes = (uint64_t)sqlite3_column_int64(st, i++);
    silt_db_column_text(st, i++, r->cause, sizeof(r->cause));
}

int silt_store_each_process(struct silt_store *s, void (*each)(void *, struct silt_process_row *),
                            void *context, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_PROCESS];
    int rc;
    if (silt_db_sweep(s, "DELETE FROM process WHERE slot NOT IN (SELECT slot FROM sandbox)", e,
                      "forget processes without a sandbox")
        < 0)
        return -1;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct silt_process_row row = {0};
        read_process(st, &row);
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read processes");
}
