/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <stdlib.h>

void silt_context_row_fini(struct silt_context_row *r)
{
    free(r->cwd);
    free(r->env);
    r->cwd = r->env = NULL;
    r->env_len = 0;
}

int silt_store_put_context(struct silt_store *s, const struct silt_context_row *r,
                           struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_CONTEXT];
    int i = 1;
    (void)sqlite3_bind_int64(st, i++, r->slot);
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->number);
    (void)sqlite3_bind_text(st, i++, r->id, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(st, i++, (int)r->language);
    (void)sqlite3_bind_int(st, i++, r->is_default);
    silt_db_bind_text(st, i++, r->cwd);
    (void)sqlite3_bind_blob64(st, i++, r->env, r->env_len, SQLITE_STATIC);
    (void)sqlite3_bind_int64(st, i++, r->timeout_ms);
    (void)sqlite3_bind_int64(st, i++, r->count);
    (void)sqlite3_bind_int64(st, i++, r->created_ms);
    (void)sqlite3_bind_int64(st, i++, r->used_ms);
    (void)sqlite3_bind_int64(st, i++, r->deadline_ms);
    return silt_db_finish(s, st, e, "remember context");
}

int silt_store_remove_context(struct silt_store *s, const struct silt_context_row *r,
                              struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_CONTEXT];
    (void)sqlite3_bind_int64(st, 1, r->slot);
    (void)sqlite3_bind_int64(st, 2, (int64_t)r->number);
    return silt_db_finish(s, st, e, "forget context");
}

static void read_context(sqlite3_stmt *st, struct silt_context_row *r)
{
    size_t len;
    int i = 0;
    r->slot = (uint32_t)sqlite3_column_int64(st, i++);
    r->number = (uint64_t)sqlite3_column_int64(st, i++);
    silt_db_column_text(st, i++, r->id, sizeof(r->id));
    unsigned language = (unsigned)sqlite3_column_int(st, i++);
    r->language = language < SILT_LANGUAGE_MAX ? (enum silt_language)language : SILT_PYTHON;
    r->is_default = sqlite3_column_int(st, i++) != 0;
    r->cwd = silt_db_column_dup(st, i++, &len);
    r->env = silt_db_column_dup(st, i++, &r->env_len);
    r->timeout_ms = (uint32_t)sqlite3_column_int64(st, i++);
    r->count = (uint32_t)sqlite3_column_int64(st, i++);
    r->created_ms = sqlite3_column_int64(st, i++);
    r->used_ms = sqlite3_column_int64(st, i++);
    r->deadline_ms = sqlite3_column_int64(st, i++);
}

int silt_store_each_context(struct silt_store *s, void (*each)(void *, struct silt_context_row *),
                            void *context, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_CONTEXT];
    int rc;
    if (silt_db_sweep(s, "DELETE FROM context WHERE slot NOT IN (SELECT slot FROM sandbox)", e,
                      "forget contexts without a sandbox")
        < 0)
        return -1;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct silt_context_row row = {0};
        read_context(st, &row);
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read contexts");
}
