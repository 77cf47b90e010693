/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

int silt_store_put_port(struct silt_store *s, const struct silt_port_row *r, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_PORT];
    int i = 1;
    (void)sqlite3_bind_int64(st, i++, r->slot);
    (void)sqlite3_bind_int(st, i++, r->port);
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->route);
    silt_db_bind_text(st, i++, r->name);
    (void)sqlite3_bind_text(st, i++, r->token, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(st, i++, r->locked);
    (void)sqlite3_bind_int64(st, i++, r->exposed_ms);
    return silt_db_add(s, st, e, "remember port");
}

int silt_store_remove_port(struct silt_store *s, const struct silt_port_row *r,
                           struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_PORT];
    (void)sqlite3_bind_int64(st, 1, r->slot);
    (void)sqlite3_bind_int(st, 2, r->port);
    return silt_db_finish(s, st, e, "forget port");
}

int silt_store_remove_ports(struct silt_store *s, uint32_t slot, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_PORTS];
    (void)sqlite3_bind_int64(st, 1, slot);
    if (silt_db_finish(s, st, e, "forget ports") < 0)
        return -1;
    st = s->statements[SILT_DB_REMOVE_ALIAS];
    (void)sqlite3_bind_int64(st, 1, slot);
    return silt_db_finish(s, st, e, "forget alias");
}

int silt_store_put_alias(struct silt_store *s, const struct silt_sandbox_row *r,
                         struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_ALIAS];
    (void)sqlite3_bind_int64(st, 1, r->slot);
    (void)sqlite3_bind_text(st, 2, r->alias, -1, SQLITE_STATIC);
    return silt_db_add(s, st, e, "remember alias");
}

static void read_port(sqlite3_stmt *st, struct silt_port_row *r)
{
    int i = 0;
    r->slot = (uint32_t)sqlite3_column_int64(st, i++);
    r->port = (uint16_t)sqlite3_column_int(st, i++);
    r->route = (uint64_t)sqlite3_column_int64(st, i++);
    silt_db_column_text(st, i++, r->name, sizeof(r->name));
    silt_db_column_text(st, i++, r->token, sizeof(r->token));
    r->locked = sqlite3_column_int(st, i++) != 0;
    r->exposed_ms = sqlite3_column_int64(st, i++);
}

int silt_store_each_port(struct silt_store *s, void (*each)(void *, const struct silt_port_row *),
                         void *context, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_PORT];
    int rc;
    if (silt_db_sweep(s,
                      "DELETE FROM port WHERE slot NOT IN (SELECT slot FROM sandbox);"
                      "DELETE FROM alias WHERE slot NOT IN (SELECT slot FROM sandbox)",
                      e, "forget ports without a sandbox")
        < 0)
        return -1;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct silt_port_row row = {0};
        read_port(st, &row);
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read ports");
}

int silt_store_secret(struct silt_store *s, const char *name, char ret[SILT_SECRET_SIZE],
                      struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_GET_META];
    (void)sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    ret[0] = 0;
    if (sqlite3_step(st) == SQLITE_ROW)
        silt_db_column_text(st, 0, ret, SILT_SECRET_SIZE);
    (void)sqlite3_reset(st);
    if (ret[0] != 0)
        return 0;
    silt_id_random(ret, SILT_SECRET_SIZE - 1);
    st = s->statements[SILT_DB_PUT_META];
    (void)sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, 2, ret, -1, SQLITE_STATIC);
    return silt_db_finish(s, st, e, "remember a secret");
}
