/* SPDX-License-Identifier: Apache-2.0 */
/* db: the database connection, its prepared statements and column helpers. Private to this
 * directory; runs in siltd's loop. */
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
    SILT_DB_PUT_SESSION,
    SILT_DB_REMOVE_SESSION,
    SILT_DB_REMOVE_SESSIONS,
    SILT_DB_EACH_SESSION,
    SILT_DB_PUT_EVENT,
    SILT_DB_TRIM_EVENTS,
    SILT_DB_FIRST_EVENT,
    SILT_DB_LAST_EVENT,
    SILT_DB_EACH_EVENT,
    SILT_DB_PUT_SNAPSHOT,
    SILT_DB_REMOVE_SNAPSHOT,
    SILT_DB_EACH_SNAPSHOT,
    SILT_DB_PUT_HISTORY,
    SILT_DB_REMOVE_HISTORY,
    SILT_DB_REMOVE_HISTORIES,
    SILT_DB_EACH_HISTORY,
    SILT_DB_PUT_META,
    SILT_DB_GET_META,
    SILT_DB_STATEMENT_MAX
};

/* The reserve on the disk (store/room.c). */
struct silt_room {
    int file, wal;     /* kept open; -1: no such file */
    uint64_t wal_used; /* bytes */
    uint64_t written;  /* bytes since the reserve was complete */
    bool full;         /* the reserve could not be completed */
};

struct silt_store {
    struct silt_room room;
    sqlite3 *db;
    sqlite3
        *checkpointer; /* kept open: closing it while db holds locks would strand a descriptor */
    sqlite3_stmt *statements[SILT_DB_STATEMENT_MAX];
};

int silt_db_fail(sqlite3 *db, struct silt_error *e, const char *doing);
/* Runs a statement that returns no rows, and resets it for the next use. */
int silt_db_finish(struct silt_store *s, sqlite3_stmt *st, struct silt_error *e, const char *doing);
/* The same for a new row, if the disk has room for more (silt_store_admit). */
int silt_db_add(struct silt_store *s, sqlite3_stmt *st, struct silt_error *e, const char *doing);
void silt_db_bind_text(sqlite3_stmt *st, int at,
                       const char *text); /* NULL and "" are stored as NULL */
void silt_db_column_text(sqlite3_stmt *st, int at, char *out, size_t size);
/* A NUL-terminated copy, owned by the caller; NULL for NULL. */
char *silt_db_column_dup(sqlite3_stmt *st, int at, size_t *ret_len);
void silt_db_column_digest(sqlite3_stmt *st, int at,
                           uint8_t out[SILT_DIGEST_SIZE]); /* zeros: none */

/* For writes that a start can do without: true, and logged, if the disk was full. */
bool silt_db_is_full(struct silt_store *s, const struct silt_error *e);
/* Deletes rows without an owner when siltd starts. On a full disk they stay until the next start.
 */
int silt_db_sweep(struct silt_store *s, const char *text, struct silt_error *e, const char *doing);

/* init before the first connection is opened, fini after the last one is closed: closing any
 * descriptor of the file releases all of its locks. */
void silt_room_init(struct silt_room *room, const char *path);
void silt_room_open(struct silt_store *s, const char *path);
void silt_room_fini(struct silt_room *room);

/* Whether the last error means that the file is damaged; a full disk does not count. */
bool silt_db_is_damaged(sqlite3 *db);
/* Reads the whole file: some milliseconds per ten megabytes. */
int silt_db_check(sqlite3 *db, bool *ret_damaged, struct silt_error *e);
/* Renames the file to <path>.damaged-<date> and logs it. */
int silt_db_set_aside(const char *path, const char *why, struct silt_error *e);
