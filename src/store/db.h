/* SPDX-License-Identifier: Apache-2.0 */
/* db: what the files of this room share: the connection, its prepared statements, columns. */
#pragma once

#include "store/store.h"

#include <sqlite3.h>

enum silt_db_statement {
    SILT_DB_PUT_SANDBOX,
    SILT_DB_REMOVE_SANDBOX,
    SILT_DB_EACH_SANDBOX,
    SILT_DB_PUT_POLICY,
    SILT_DB_REMOVE_POLICY,
    SILT_DB_PUT_PROCESS,
    SILT_DB_REMOVE_PROCESS,
    SILT_DB_REMOVE_PROCESSES,
    SILT_DB_EACH_PROCESS,
    SILT_DB_PUT_CONTEXT,
    SILT_DB_REMOVE_CONTEXT,
    SILT_DB_REMOVE_CONTEXTS,
    SILT_DB_EACH_CONTEXT,
    SILT_DB_PUT_PORT,
    SILT_DB_REMOVE_PORT,
    SILT_DB_REMOVE_PORTS,
    SILT_DB_EACH_PORT,
    SILT_DB_PUT_ALIAS,
    SILT_DB_REMOVE_ALIAS,
    SILT_DB_PUT_CAPTURE,
    SILT_DB_REMOVE_CAPTURE,
    SILT_DB_EACH_CAPTURE,
    SILT_DB_PUT_IMAGE,
    SILT_DB_REMOVE_IMAGE,
    SILT_DB_EACH_IMAGE,
    SILT_DB_PUT_IMAGE_NAME,
    SILT_DB_REMOVE_IMAGE_NAME,
    SILT_DB_EACH_IMAGE_NAME,
    SILT_DB_PUT_CONTAINER,
    SILT_DB_REMOVE_CONTAINER,
    SILT_DB_EACH_CONTAINER,
    SILT_DB_PUT_VOLUME,
    SILT_DB_REMOVE_VOLUME,
    SILT_DB_EACH_VOLUME,
    SILT_DB_PUT_STEP,
    SILT_DB_REMOVE_STEP,
    SILT_DB_EACH_STEP,
    SILT_DB_PUT_META,
    SILT_DB_GET_META,
    SILT_DB_STATEMENT_MAX
};

struct silt_store {
    sqlite3 *db;
    sqlite3 *checkpointer; /* kept open: closing it while db holds locks would strand a descriptor */
    sqlite3_stmt *statements[SILT_DB_STATEMENT_MAX];
};

int silt_db_fail(sqlite3 *db, struct silt_error *e, const char *doing);
/* Runs a statement that returns nothing, and makes it ready for the next use. */
int silt_db_finish(struct silt_store *s, sqlite3_stmt *st, struct silt_error *e, const char *doing);
void silt_db_bind_text(sqlite3_stmt *st, int at, const char *text); /* NULL and empty are NULL */
void silt_db_column_text(sqlite3_stmt *st, int at, char *out, size_t size);
/* A terminated copy, the caller's; NULL for NULL. */
char *silt_db_column_dup(sqlite3_stmt *st, int at, size_t *ret_len);
void silt_db_column_digest(sqlite3_stmt *st, int at, uint8_t out[SILT_DIGEST_SIZE]); /* zeros: none */

/* Whether its last error says that the file is no good; a full disk is another matter. */
bool silt_db_is_damaged(sqlite3 *db);
/* Reads the whole file: some milliseconds for each ten megabytes. */
int silt_db_check(sqlite3 *db, bool *ret_damaged, struct silt_error *e);
/* Renames it to <path>.damaged-<date>, and logs that. */
int silt_db_set_aside(const char *path, const char *why, struct silt_error *e);
