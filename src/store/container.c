/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <stdlib.h>

void silt_container_row_fini(struct silt_container_row *r)
{
    free(r->name);
    free(r->body);
    free(r->copies);
    r->name = r->body = r->copies = NULL;
}

int silt_store_put_container(struct silt_store *s, const struct silt_container_row *r,
                             struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_CONTAINER];
    int i = 1;
    (void)sqlite3_bind_text(st, i++, r->id, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, i++, r->name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(st, i++, r->uid);
    (void)sqlite3_bind_int(st, i++, (int)r->status);
    (void)sqlite3_bind_int(st, i++, r->exit_code);
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->number);
    (void)sqlite3_bind_int64(st, i++, r->created_ms);
    (void)sqlite3_bind_int64(st, i++, r->started_ms);
    (void)sqlite3_bind_int64(st, i++, r->ended_ms);
    (void)sqlite3_bind_blob(st, i++, r->digest, SILT_DIGEST_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, i++, r->body, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(st, i++, r->port);
    (void)sqlite3_bind_blob(st, i++, r->copies, (int)r->copies_len, SQLITE_STATIC);
    return silt_db_finish(s, st, e, "remember container");
}

int silt_store_remove_container(struct silt_store *s, const char *id, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_CONTAINER];
    (void)sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
    return silt_db_finish(s, st, e, "forget container");
}

static char *text_of(sqlite3_stmt *st, int at)
{
    size_t len;
    return silt_db_column_dup(st, at, &len);
}

static void read_container(sqlite3_stmt *st, struct silt_container_row *r)
{
    int i = 0;
    silt_db_column_text(st, i++, r->id, sizeof(r->id));
    r->name = text_of(st, i++);
    r->uid = (uint32_t)sqlite3_column_int64(st, i++);
    int status = sqlite3_column_int(st, i++);
    r->status = status >= 0 && status < SILT_CONTAINER_STATUS_MAX
                    ? (enum silt_container_status)status
                    : SILT_CONTAINER_EXITED;
    r->exit_code = sqlite3_column_int(st, i++);
    r->number = (uint64_t)sqlite3_column_int64(st, i++);
    r->created_ms = sqlite3_column_int64(st, i++);
    r->started_ms = sqlite3_column_int64(st, i++);
    r->ended_ms = sqlite3_column_int64(st, i++);
    if (sqlite3_column_bytes(st, i) == SILT_DIGEST_SIZE)
        memcpy(r->digest, sqlite3_column_blob(st, i), SILT_DIGEST_SIZE);
    i++;
    r->body = text_of(st, i++);
    r->port = (uint16_t)sqlite3_column_int(st, i++);
    r->copies = silt_db_column_dup(st, i++, &r->copies_len);
}

int silt_store_each_container(struct silt_store *s,
                              void (*each)(void *, struct silt_container_row *), void *context,
                              struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_CONTAINER];
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct silt_container_row row = {0};
        read_container(st, &row);
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read containers");
}
