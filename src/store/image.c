/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

static void bind_digest(sqlite3_stmt *st, int at, const uint8_t digest[SILT_DIGEST_SIZE])
{
    (void)sqlite3_bind_blob(st, at, digest, SILT_DIGEST_SIZE, SQLITE_STATIC);
}

int silt_store_put_image(struct silt_store *s, const struct silt_image_row *r, struct silt_error *e)
{
    static const uint8_t none[SILT_DIGEST_SIZE];
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_IMAGE];
    bind_digest(st, 1, r->digest);
    if (memcmp(r->parent, none, sizeof(none)) != 0)
        bind_digest(st, 2, r->parent);
    (void)sqlite3_bind_int(st, 3, r->layered);
    (void)sqlite3_bind_int(st, 4, r->host_usr);
    (void)sqlite3_bind_int64(st, 5, (int64_t)r->bytes);
    (void)sqlite3_bind_int64(st, 6, r->created_ms);
    (void)sqlite3_bind_text(st, 7, r->config, -1, SQLITE_STATIC);
    return silt_db_add(s, st, e, "remember image");
}

int silt_store_remove_image(struct silt_store *s, const uint8_t digest[SILT_DIGEST_SIZE],
                            struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_IMAGE];
    bind_digest(st, 1, digest);
    return silt_db_finish(s, st, e, "forget image");
}

int silt_store_each_image(struct silt_store *s, void (*each)(void *, struct silt_image_row *),
                          void *context, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_IMAGE];
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct silt_image_row row = {0};
        size_t len;
        silt_db_column_digest(st, 0, row.digest);
        silt_db_column_digest(st, 1, row.parent);
        row.layered = sqlite3_column_int(st, 2) != 0;
        row.host_usr = sqlite3_column_int(st, 3) != 0;
        row.bytes = (uint64_t)sqlite3_column_int64(st, 4);
        row.created_ms = sqlite3_column_int64(st, 5);
        row.config = silt_db_column_dup(st, 6, &len);
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read images");
}

int silt_store_put_image_name(struct silt_store *s, const char *name,
                              const uint8_t digest[SILT_DIGEST_SIZE], struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_IMAGE_NAME];
    (void)sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    bind_digest(st, 2, digest);
    return silt_db_add(s, st, e, "remember the name of an image");
}

int silt_store_remove_image_name(struct silt_store *s, const char *name, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_IMAGE_NAME];
    (void)sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    return silt_db_finish(s, st, e, "forget the name of an image");
}

int silt_store_each_image_name(struct silt_store *s,
                               void (*each)(void *, const char *, const uint8_t *), void *context,
                               struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_IMAGE_NAME];
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        char name[SILT_IMAGE_NAME_SIZE];
        uint8_t digest[SILT_DIGEST_SIZE];
        silt_db_column_text(st, 0, name, sizeof(name));
        silt_db_column_digest(st, 1, digest);
        each(context, name, digest);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read names of images");
}

int silt_store_put_step(struct silt_store *s, const struct silt_step_row *r, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_STEP];
    bind_digest(st, 1, r->key);
    bind_digest(st, 2, r->digest);
    (void)sqlite3_bind_int64(st, 3, r->used_ms);
    return silt_db_add(s, st, e, "remember a step");
}

int silt_store_remove_step(struct silt_store *s, const struct silt_step_row *r,
                           struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_STEP];
    bind_digest(st, 1, r->key);
    return silt_db_finish(s, st, e, "forget a step");
}

int silt_store_each_step(struct silt_store *s, void (*each)(void *, const struct silt_step_row *),
                         void *context, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_STEP];
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct silt_step_row row = {.used_ms = sqlite3_column_int64(st, 2)};
        silt_db_column_digest(st, 0, row.key);
        silt_db_column_digest(st, 1, row.digest);
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read steps");
}
