/* SPDX-License-Identifier: Apache-2.0 */
/* Renames an unreadable database, so that siltd can start with a new one and fill it from the
 * recovery records. */
#include "base/log.h"
#include "store/db.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum { PATH_SIZE = 4096 };

bool silt_db_is_damaged(sqlite3 *db)
{
    int code = db != NULL ? sqlite3_errcode(db) & 0xff : SQLITE_NOMEM;
    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

int silt_db_check(sqlite3 *db, bool *ret_damaged, struct silt_error *e)
{
    sqlite3_stmt *st = NULL;
    int done = 0;
    if (sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &st, NULL) != SQLITE_OK
        || sqlite3_step(st) != SQLITE_ROW) {
        *ret_damaged = silt_db_is_damaged(db);
        done = silt_db_fail(db, e, "check the store");
    } else if (strcmp((const char *)sqlite3_column_text(st, 0), "ok") != 0) {
        *ret_damaged = true;
        done = silt_fail(e, SILT_INTERNAL, "check the store: %s",
                         (const char *)sqlite3_column_text(st, 0));
    }
    (void)sqlite3_finalize(st);
    return done;
}

static void date(char out[32])
{
    time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts) == NULL || strftime(out, 32, "%Y%m%dT%H%M%SZ", &parts) == 0)
        out[0] = 0;
}

int silt_db_set_aside(const char *path, const char *why, struct silt_error *e)
{
    static const char *const suffixes[] = {"-wal", "-shm", ""};
    char now[32], from[PATH_SIZE], to[PATH_SIZE + 64];
    date(now);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(from, sizeof(from), "%s%s", path, suffixes[i]);
        (void)snprintf(to, sizeof(to), "%s.damaged-%s%s", path, now, suffixes[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            return silt_fail_errno(e, "set the damaged store %.300s aside", path);
    }
    silt_log(SILT_LOG_ERROR, "store.damaged", "error=\"%s\" kept_as=%s", why, to);
    return 0;
}
