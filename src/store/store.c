/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/own.h"
#include "store/db.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each migration takes the schema from its index to the next number; never change one that
 * shipped. */
static const char *const migrations[] = {
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
    "CREATE TABLE sandbox(slot INTEGER PRIMARY KEY, id TEXT UNIQUE, image TEXT NOT NULL,"
    " digest BLOB NOT NULL, host_usr INTEGER NOT NULL, ephemeral INTEGER NOT NULL,"
    " running INTEGER NOT NULL, type TEXT, memory INTEGER NOT NULL, disk INTEGER NOT NULL,"
    " cpu_milli INTEGER NOT NULL, pids INTEGER NOT NULL, env BLOB, labels TEXT,"
    " sleep_after_s INTEGER NOT NULL, created_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL,"
    " used_ms INTEGER NOT NULL, incarnation TEXT, death_cause TEXT, death_message TEXT,"
    " death_at_ms INTEGER, death_exit INTEGER, death_signal INTEGER, death_limit INTEGER,"
    " death_peak INTEGER);"
    "CREATE TABLE image(name TEXT PRIMARY KEY, digest BLOB NOT NULL, bytes INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL, host_usr INTEGER NOT NULL) WITHOUT ROWID;",

    "CREATE TABLE process(slot INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, "
    "command TEXT,"
    " session TEXT, remark TEXT, status INTEGER NOT NULL,"
    " auto_cleanup INTEGER NOT NULL, pid INTEGER NOT NULL, exit_code INTEGER NOT NULL, signal "
    "INTEGER NOT NULL,"
    " started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, log_bytes INTEGER NOT NULL, cause "
    "TEXT,"
    " PRIMARY KEY(slot, number)) WITHOUT ROWID;",

    "ALTER TABLE sandbox ADD COLUMN network INTEGER NOT NULL DEFAULT 0;",

    /* A table of its own: sandboxes are written often, while rules are many and change rarely. */
    "CREATE TABLE policy(slot INTEGER PRIMARY KEY, allow TEXT NOT NULL);",

    "CREATE TABLE context(slot INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL,"
    " language INTEGER NOT NULL, is_default INTEGER NOT NULL, cwd TEXT, env BLOB, timeout_ms "
    "INTEGER NOT NULL,"
    " count INTEGER NOT NULL, created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL,"
    " deadline_ms INTEGER NOT NULL, PRIMARY KEY(slot, number)) WITHOUT ROWID;",

    "CREATE TABLE port(slot INTEGER NOT NULL, port INTEGER NOT NULL, route INTEGER NOT NULL, name "
    "TEXT,"
    " token TEXT NOT NULL, locked INTEGER NOT NULL, exposed_ms INTEGER NOT NULL, PRIMARY KEY(slot, "
    "port))"
    " WITHOUT ROWID;"
    "CREATE TABLE alias(slot INTEGER PRIMARY KEY, alias TEXT NOT NULL);",

    ("CREATE TABLE capture(number INTEGER PRIMARY KEY, port INTEGER NOT NULL, internet INTEGER NOT "
     "NULL,"
     " hostnames TEXT);"),

    /* An image has any number of names. Its configuration belongs to the image, not to a name;
     * images of our own recipes are those whose port 3000 we serve. */
    "CREATE TABLE image_info(digest BLOB PRIMARY KEY, parent BLOB, layered INTEGER NOT NULL,"
    " host_usr INTEGER NOT NULL, bytes INTEGER NOT NULL, created_ms INTEGER NOT NULL, config TEXT "
    "NOT NULL)"
    " WITHOUT ROWID;"
    "INSERT OR IGNORE INTO image_info SELECT digest, NULL, 0, host_usr, bytes, created_ms,"
    " CASE WHEN name IN ('base','host') THEN '{\"Labels\":{\"silt.control\":\"builtin\"}}' ELSE "
    "'{}' END"
    " FROM image ORDER BY name IN ('base','host') DESC;"
    "ALTER TABLE image DROP COLUMN bytes; ALTER TABLE image DROP COLUMN created_ms;"
    "ALTER TABLE image DROP COLUMN host_usr;",

    "CREATE TABLE container(id TEXT PRIMARY KEY, name TEXT NOT NULL, uid INTEGER NOT NULL, status "
    "INTEGER NOT NULL,"
    " exit_code INTEGER NOT NULL, number INTEGER NOT NULL, created_ms INTEGER NOT NULL, started_ms "
    "INTEGER NOT NULL,"
    " ended_ms INTEGER NOT NULL, digest BLOB NOT NULL, body TEXT NOT NULL, extra TEXT) WITHOUT "
    "ROWID;"
    "CREATE TABLE volume(name TEXT PRIMARY KEY, labels TEXT, created_ms INTEGER NOT NULL) WITHOUT "
    "ROWID;",

    /* The image produced by a Dockerfile step. */
    "CREATE TABLE build_step(key BLOB PRIMARY KEY, digest BLOB NOT NULL, used_ms INTEGER NOT NULL) "
    "WITHOUT ROWID;",

    /* What a sidecar needs to be restored after all of Silt was down. */
    "ALTER TABLE container DROP COLUMN extra; ALTER TABLE container ADD COLUMN port INTEGER NOT "
    "NULL DEFAULT 0;"
    "ALTER TABLE capture ADD COLUMN certificate TEXT; ALTER TABLE capture ADD COLUMN key TEXT;",

    /* enum silt_store_records. A database that an earlier siltd has used contains the machine's
     * boot id. */
    "INSERT OR REPLACE INTO meta SELECT 'records', EXISTS(SELECT 1 FROM meta WHERE "
    "name='boot_id');",

    /* Where copies of volumes are; a commit leaves them out. */
    "ALTER TABLE container ADD COLUMN copies BLOB;",

    "ALTER TABLE sandbox ADD COLUMN stop_after_s INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandbox ADD COLUMN keep_alive INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandbox ADD COLUMN let_sleep INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandbox ADD COLUMN remove_after_stop INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandbox ADD COLUMN expires_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandbox ADD COLUMN paused_ms INTEGER NOT NULL DEFAULT 0;"
    "UPDATE sandbox SET stop_after_s=86400 WHERE sleep_after_s>0;",

    "CREATE TABLE event(number INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, type INTEGER NOT NULL,"
    " id TEXT, details TEXT);",
    /* `record`: the sandbox as it was, encoded as its recovery record. */
    "CREATE TABLE snapshot(id TEXT PRIMARY KEY, digest BLOB NOT NULL, sandbox TEXT NOT NULL, name "
    "TEXT, bytes INTEGER NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, "
    "record BLOB NOT NULL) WITHOUT ROWID;",

    "CREATE TABLE session(slot INTEGER NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,"
    " timeout_ms INTEGER NOT NULL, cwd TEXT, env BLOB, UNIQUE(slot, name));",

    "ALTER TABLE sandbox ADD COLUMN auto_snapshot INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE snapshot ADD COLUMN automatic INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE history(slot INTEGER NOT NULL, number INTEGER NOT NULL, command TEXT NOT NULL,"
    " at_ms INTEGER NOT NULL, ended INTEGER NOT NULL, exit_code INTEGER NOT NULL, snapshot TEXT,"
    " problem TEXT, PRIMARY KEY(slot, number)) WITHOUT ROWID;",
};

static const char *const texts[SILT_DB_STATEMENT_MAX] = {
    [SILT_DB_PUT_STEP] = "INSERT OR REPLACE INTO build_step VALUES(?,?,?)",
    [SILT_DB_REMOVE_STEP] = "DELETE FROM build_step WHERE key=?",
    [SILT_DB_EACH_STEP] = "SELECT * FROM build_step ORDER BY used_ms",
    [SILT_DB_PUT_SANDBOX] =
        ("INSERT OR REPLACE INTO sandbox VALUES"
         "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"),
    [SILT_DB_REMOVE_SANDBOX] = "DELETE FROM sandbox WHERE slot=?",
    [SILT_DB_EACH_SANDBOX] = ("SELECT sandbox.*, policy.allow, alias.alias FROM sandbox"
                              " LEFT JOIN policy USING(slot) LEFT JOIN alias USING(slot)"),
    [SILT_DB_PUT_POLICY] = "INSERT OR REPLACE INTO policy VALUES(?,?)",
    [SILT_DB_REMOVE_POLICY] = "DELETE FROM policy WHERE slot=?",
    [SILT_DB_PUT_CONTEXT] = "INSERT OR REPLACE INTO context VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
    [SILT_DB_REMOVE_CONTEXT] = "DELETE FROM context WHERE slot=? AND number=?",
    [SILT_DB_REMOVE_CONTEXTS] = "DELETE FROM context WHERE slot=?",
    [SILT_DB_EACH_CONTEXT] = "SELECT * FROM context ORDER BY number",
    [SILT_DB_PUT_PORT] = "INSERT OR REPLACE INTO port VALUES(?,?,?,?,?,?,?)",
    [SILT_DB_REMOVE_PORT] = "DELETE FROM port WHERE slot=? AND port=?",
    [SILT_DB_REMOVE_PORTS] = "DELETE FROM port WHERE slot=?",
    [SILT_DB_EACH_PORT] = "SELECT * FROM port ORDER BY slot, port",
    [SILT_DB_PUT_ALIAS] = "INSERT OR REPLACE INTO alias VALUES(?,?)",
    [SILT_DB_REMOVE_ALIAS] = "DELETE FROM alias WHERE slot=?",
    [SILT_DB_PUT_CAPTURE] = "INSERT OR REPLACE INTO capture VALUES(?,?,?,?,?,?)",
    [SILT_DB_REMOVE_CAPTURE] = "DELETE FROM capture WHERE number=?",
    [SILT_DB_EACH_CAPTURE] = "SELECT * FROM capture",
    [SILT_DB_PUT_IMAGE] = "INSERT OR REPLACE INTO image_info VALUES(?,?,?,?,?,?,?)",
    [SILT_DB_REMOVE_IMAGE] = "DELETE FROM image_info WHERE digest=?",
    [SILT_DB_EACH_IMAGE] = "SELECT * FROM image_info ORDER BY created_ms, digest",
    [SILT_DB_PUT_IMAGE_NAME] = "INSERT OR REPLACE INTO image(name, digest) VALUES(?,?)",
    [SILT_DB_REMOVE_IMAGE_NAME] = "DELETE FROM image WHERE name=?",
    [SILT_DB_EACH_IMAGE_NAME] = "SELECT name, digest FROM image ORDER BY name",
    [SILT_DB_PUT_CONTAINER] = "INSERT OR REPLACE INTO container VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [SILT_DB_REMOVE_CONTAINER] = "DELETE FROM container WHERE id=?",
    [SILT_DB_EACH_CONTAINER] = "SELECT * FROM container ORDER BY created_ms",
    [SILT_DB_PUT_VOLUME] = "INSERT OR REPLACE INTO volume VALUES(?,?,?)",
    [SILT_DB_REMOVE_VOLUME] = "DELETE FROM volume WHERE name=?",
    [SILT_DB_EACH_VOLUME] = "SELECT * FROM volume ORDER BY name",
    [SILT_DB_PUT_SESSION] = "INSERT OR REPLACE INTO session VALUES(?,?,?,?,?,?)",
    [SILT_DB_REMOVE_SESSION] = "DELETE FROM session WHERE slot=? AND name=?",
    [SILT_DB_REMOVE_SESSIONS] = "DELETE FROM session WHERE slot=?",
    [SILT_DB_EACH_SESSION] = "SELECT * FROM session ORDER BY slot, rowid",
    [SILT_DB_PUT_EVENT] = "INSERT OR REPLACE INTO event VALUES(?,?,?,?,?)",
    [SILT_DB_TRIM_EVENTS] = ("DELETE FROM event WHERE number <= (SELECT number FROM event"
                             " ORDER BY number DESC LIMIT 1 OFFSET ?)"),
    [SILT_DB_FIRST_EVENT] = "SELECT number FROM event ORDER BY number LIMIT 1",
    [SILT_DB_LAST_EVENT] = "SELECT number FROM event ORDER BY number DESC LIMIT 1",
    [SILT_DB_EACH_EVENT] = ("SELECT * FROM event WHERE number > ? AND number < ?"
                            " ORDER BY number LIMIT ?"),
    [SILT_DB_PUT_SNAPSHOT] = "INSERT OR REPLACE INTO snapshot VALUES(?,?,?,?,?,?,?,?,?)",
    [SILT_DB_REMOVE_SNAPSHOT] = "DELETE FROM snapshot WHERE id=?",
    [SILT_DB_EACH_SNAPSHOT] = "SELECT * FROM snapshot ORDER BY created_ms, id",
    [SILT_DB_PUT_HISTORY] = "INSERT OR REPLACE INTO history VALUES(?,?,?,?,?,?,?,?)",
    [SILT_DB_REMOVE_HISTORY] = "DELETE FROM history WHERE slot=? AND number=?",
    [SILT_DB_REMOVE_HISTORIES] = "DELETE FROM history WHERE slot=?",
    [SILT_DB_EACH_HISTORY] = "SELECT * FROM history ORDER BY at_ms, number",
    [SILT_DB_PUT_META] = "INSERT OR REPLACE INTO meta VALUES(?,?)",
    [SILT_DB_GET_META] = "SELECT value FROM meta WHERE name=?",
    [SILT_DB_PUT_PROCESS] = "INSERT OR REPLACE INTO process VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [SILT_DB_REMOVE_PROCESS] = "DELETE FROM process WHERE slot=? AND number=?",
    [SILT_DB_REMOVE_PROCESSES] = "DELETE FROM process WHERE slot=?",
    [SILT_DB_EACH_PROCESS] = "SELECT * FROM process ORDER BY number",
};

int silt_db_fail(sqlite3 *db, struct silt_error *e, const char *doing)
{
    int code = db != NULL ? sqlite3_errcode(db) & 0xff : SQLITE_NOMEM;
    int sys = code == SQLITE_IOERR ? sqlite3_system_errno(db) : 0;
    bool full = code == SQLITE_FULL || sys == ENOSPC || sys == EDQUOT;
    return silt_fail(e, full ? SILT_NO_SPACE : SILT_INTERNAL, "%s: %s", doing,
                     db != NULL ? sqlite3_errmsg(db) : "no memory");
}

static int migrate(sqlite3 *db, struct silt_error *e)
{
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &st, NULL) != SQLITE_OK)
        return silt_db_fail(db, e, "read schema version");
    size_t version = sqlite3_step(st) == SQLITE_ROW ? (size_t)sqlite3_column_int(st, 0) : 0;
    (void)sqlite3_finalize(st);
    if (version > SILT_COUNT(migrations))
        return silt_fail(e, SILT_UNAVAILABLE,
                         "the store was written by a newer version (schema %zu, known %zu)",
                         version, SILT_COUNT(migrations));
    for (; version < SILT_COUNT(migrations); version++) {
        char text[2048];
        (void)snprintf(text, sizeof(text), "BEGIN;%s PRAGMA user_version=%zu; COMMIT;",
                       migrations[version], version + 1);
        if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
            return silt_db_fail(db, e, "bring the store's schema up to date");
    }
    return 0;
}

static int connect_to(const char *path, sqlite3 **ret, bool *ret_damaged, struct silt_error *e)
{
    sqlite3 *db = NULL;
    /* unix-excl keeps the WAL's index in memory; as a file it would need disk space to open. No
     * other process opens the database. */
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix-excl")
            != SQLITE_OK
        || sqlite3_exec(db,
                        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                        "PRAGMA wal_autocheckpoint=0; PRAGMA busy_timeout=2000;",
                        NULL, NULL, NULL)
               != SQLITE_OK) {
        *ret_damaged = silt_db_is_damaged(db);
        (void)silt_db_fail(db, e, "open");
        (void)sqlite3_close(db);
        return silt_because(e, "store %s", path);
    }
    *ret = db;
    return 0;
}

static int prepare(struct silt_store *s, struct silt_error *e)
{
    for (size_t i = 0; i < SILT_DB_STATEMENT_MAX; i++)
        if (sqlite3_prepare_v3(s->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[i],
                               NULL)
            != SQLITE_OK)
            return silt_db_fail(s->db, e, texts[i]);
    return 0;
}

static int open_once(const char *path, struct silt_store *s, bool *ret_damaged,
                     struct silt_error *e)
{
    silt_room_init(&s->room, path);
    if (connect_to(path, &s->db, ret_damaged, e) < 0 || silt_db_check(s->db, ret_damaged, e) < 0)
        return -1;
    if (migrate(s->db, e) < 0) {
        *ret_damaged = silt_db_is_damaged(s->db);
        return -1;
    }
    if (connect_to(path, &s->checkpointer, ret_damaged, e) < 0)
        return -1;
    if (prepare(s, e) == 0) {
        silt_room_open(s, path);
        return 0;
    }
    /* SQLITE_ERROR: the version is ours but tables are missing. Other errors, such as no memory,
     * are not damage. */
    *ret_damaged = silt_db_is_damaged(s->db) || (sqlite3_errcode(s->db) & 0xff) == SQLITE_ERROR;
    return -1;
}

int silt_store_open(const char *path, struct silt_store **ret, struct silt_error *e)
{
    for (bool again = false;; again = true) {
        bool damaged = false;
        struct silt_store *s = calloc(1, sizeof(*s));
        if (s == NULL)
            abort();
        if (open_once(path, s, &damaged, e) == 0) {
            *ret = s;
            return 0;
        }
        silt_store_close(s);
        struct silt_error why = *e;
        if (!damaged || again || silt_db_set_aside(path, why.text, e) < 0)
            return -1;
    }
}

void silt_store_close(struct silt_store *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < SILT_DB_STATEMENT_MAX; i++)
        (void)sqlite3_finalize(s->statements[i]);
    (void)sqlite3_close(s->checkpointer);
    (void)sqlite3_close(s->db);
    silt_room_fini(&s->room);
    free(s);
}

void silt_sandbox_row_fini(struct silt_sandbox_row *r)
{
    free(r->env);
    free(r->labels);
    free(r->allow);
    r->allow = NULL;
    r->env = NULL;
    r->labels = NULL;
}

int silt_db_finish(struct silt_store *s, sqlite3_stmt *st, struct silt_error *e, const char *doing)
{
    int rc = sqlite3_step(st);
    int result = rc == SQLITE_DONE || rc == SQLITE_ROW ? 0 : silt_db_fail(s->db, e, doing);
    if (result < 0 && e->code == SILT_NO_SPACE)
        s->room.full = true;
    (void)sqlite3_reset(st);
    (void)sqlite3_clear_bindings(st);
    return result;
}

int silt_db_add(struct silt_store *s, sqlite3_stmt *st, struct silt_error *e, const char *doing)
{
    if (silt_store_admit(s, e) == 0)
        return silt_db_finish(s, st, e, doing);
    (void)sqlite3_clear_bindings(st);
    return silt_because(e, "%s", doing);
}

bool silt_db_is_full(struct silt_store *s, const struct silt_error *e)
{
    if (e->code != SILT_NO_SPACE)
        return false;
    silt_log(SILT_LOG_WARN, "store.unwritten", "error=\"%s\"", e->text);
    s->room.full = true;
    return true;
}

int silt_db_sweep(struct silt_store *s, const char *text, struct silt_error *e, const char *doing)
{
    if (sqlite3_exec(s->db, text, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    (void)silt_db_fail(s->db, e, doing);
    return silt_db_is_full(s, e) ? 0 : -1;
}

void silt_db_bind_text(sqlite3_stmt *st, int at, const char *text)
{
    if (text != NULL && text[0] != 0)
        (void)sqlite3_bind_text(st, at, text, -1, SQLITE_STATIC);
}

int silt_store_put_sandbox(struct silt_store *s, const struct silt_sandbox_row *r,
                           struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_SANDBOX];
    int i = 1;
    (void)sqlite3_bind_int64(st, i++, r->slot);
    silt_db_bind_text(st, i++, r->id);
    (void)sqlite3_bind_text(st, i++, r->image, -1, SQLITE_STATIC);
    (void)sqlite3_bind_blob(st, i++, r->digest, SILT_DIGEST_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_int(st, i++, r->host_usr);
    (void)sqlite3_bind_int(st, i++, r->ephemeral);
    (void)sqlite3_bind_int(st, i++, r->running);
    silt_db_bind_text(st, i++, r->type);
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->limits.memory_bytes);
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->limits.disk_bytes);
    (void)sqlite3_bind_int64(st, i++, r->limits.cpu_milli);
    (void)sqlite3_bind_int64(st, i++, r->limits.pids);
    if (r->env != NULL)
        (void)sqlite3_bind_blob64(st, i, r->env, r->env_len, SQLITE_STATIC);
    i++;
    silt_db_bind_text(st, i++, r->labels);
    (void)sqlite3_bind_int64(st, i++, r->sleep_after_s);
    (void)sqlite3_bind_int64(st, i++, r->created_ms);
    (void)sqlite3_bind_int64(st, i++, r->started_ms);
    (void)sqlite3_bind_int64(st, i++, r->used_ms);
    silt_db_bind_text(st, i++, r->incarnation);
    silt_db_bind_text(st, i++, r->death.cause);
    silt_db_bind_text(st, i++, r->death.message);
    (void)sqlite3_bind_int64(st, i++, r->death.at_ms);
    (void)sqlite3_bind_int(st, i++, r->death.exit_code);
    (void)sqlite3_bind_int(st, i++, r->death.signal);
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->death.limit_bytes);
    (void)sqlite3_bind_int64(st, i++, (int64_t)r->death.peak_bytes);
    (void)sqlite3_bind_int(st, i++, (int)r->network);
    (void)sqlite3_bind_int64(st, i++, r->stop_after_s);
    (void)sqlite3_bind_int(st, i++, r->keep_alive);
    (void)sqlite3_bind_int(st, i++, r->let_sleep);
    (void)sqlite3_bind_int(st, i++, r->remove_after_stop);
    (void)sqlite3_bind_int64(st, i++, r->expires_ms);
    (void)sqlite3_bind_int64(st, i++, r->paused_ms);
    (void)sqlite3_bind_int(st, i++, r->auto_snapshot);
    return silt_db_finish(s, st, e, "remember sandbox");
}

static int remove_rules(struct silt_store *s, uint32_t slot, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_REMOVE_POLICY];
    (void)sqlite3_bind_int64(st, 1, slot);
    return silt_db_finish(s, st, e, "forget network policy");
}

static int put_rules(struct silt_store *s, const struct silt_sandbox_row *r, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_PUT_POLICY];
    (void)sqlite3_bind_int64(st, 1, r->slot);
    (void)sqlite3_bind_text(st, 2, r->allow, -1, SQLITE_STATIC);
    return silt_db_finish(s, st, e, "remember network policy");
}

/* Several statements, all or none. A savepoint, because they may be part of a larger
 * transaction. */
static int begin_part(struct silt_store *s, struct silt_error *e, const char *doing)
{
    return sqlite3_exec(s->db, "SAVEPOINT part", NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : silt_db_fail(s->db, e, doing);
}

static int end_part(struct silt_store *s, int done, struct silt_error *e, const char *doing)
{
    if (done == 0 && sqlite3_exec(s->db, "RELEASE part", NULL, NULL, NULL) != SQLITE_OK)
        done = silt_db_fail(s->db, e, doing);
    if (done < 0)
        (void)sqlite3_exec(s->db, "ROLLBACK TO part; RELEASE part", NULL, NULL, NULL);
    return done;
}

int silt_store_put_policy(struct silt_store *s, const struct silt_sandbox_row *r,
                          struct silt_error *e)
{
    if (begin_part(s, e, "remember network policy") < 0)
        return -1;
    int done = r->allow != NULL ? put_rules(s, r, e) : remove_rules(s, r->slot, e);
    if (done == 0)
        done = silt_store_put_sandbox(s, r, e);
    return end_part(s, done, e, "remember network policy");
}

static int remove_each(struct silt_store *s, uint32_t slot, struct silt_error *e)
{
    static const enum silt_db_statement of_slot[] = {
        SILT_DB_REMOVE_SANDBOX,  SILT_DB_REMOVE_POLICY,   SILT_DB_REMOVE_PROCESSES,
        SILT_DB_REMOVE_CONTEXTS, SILT_DB_REMOVE_PORTS,    SILT_DB_REMOVE_ALIAS,
        SILT_DB_REMOVE_SESSIONS, SILT_DB_REMOVE_HISTORIES};
    for (size_t i = 0; i < SILT_COUNT(of_slot); i++) {
        sqlite3_stmt *st = s->statements[of_slot[i]];
        (void)sqlite3_bind_int64(st, 1, slot);
        if (silt_db_finish(s, st, e, "forget sandbox") < 0)
            return -1;
    }
    return 0;
}

int silt_store_remove_sandbox(struct silt_store *s, uint32_t slot, struct silt_error *e)
{
    if (begin_part(s, e, "forget sandbox") < 0)
        return -1;
    return end_part(s, remove_each(s, slot, e), e, "forget sandbox");
}

void silt_db_column_text(sqlite3_stmt *st, int at, char *out, size_t size)
{
    const unsigned char *text = sqlite3_column_text(st, at);
    (void)snprintf(out, size, "%s", text != NULL ? (const char *)text : "");
}

char *silt_db_column_dup(sqlite3_stmt *st, int at, size_t *ret_len)
{
    const void *data = sqlite3_column_blob(st, at);
    size_t len = (size_t)sqlite3_column_bytes(st, at);
    *ret_len = data != NULL ? len : 0;
    if (data == NULL)
        return NULL;
    char *copy = malloc(len + 1);
    if (copy == NULL)
        abort();
    memcpy(copy, data, len);
    copy[len] = 0;
    return copy;
}

void silt_db_column_digest(sqlite3_stmt *st, int at, uint8_t out[SILT_DIGEST_SIZE])
{
    memset(out, 0, SILT_DIGEST_SIZE);
    if (sqlite3_column_bytes(st, at) == SILT_DIGEST_SIZE)
        memcpy(out, sqlite3_column_blob(st, at), SILT_DIGEST_SIZE);
}

static void read_sandbox(sqlite3_stmt *st, struct silt_sandbox_row *r)
{
    size_t labels_len;
    int i = 0;
    r->slot = (uint32_t)sqlite3_column_int64(st, i++);
    silt_db_column_text(st, i++, r->id, sizeof(r->id));
    silt_db_column_text(st, i++, r->image, sizeof(r->image));
    silt_db_column_digest(st, i++, r->digest);
    r->host_usr = sqlite3_column_int(st, i++) != 0;
    r->ephemeral = sqlite3_column_int(st, i++) != 0;
    r->running = sqlite3_column_int(st, i++) != 0;
    silt_db_column_text(st, i++, r->type, sizeof(r->type));
    r->limits.memory_bytes = (uint64_t)sqlite3_column_int64(st, i++);
    r->limits.disk_bytes = (uint64_t)sqlite3_column_int64(st, i++);
    r->limits.cpu_milli = (uint32_t)sqlite3_column_int64(st, i++);
    r->limits.pids = (uint32_t)sqlite3_column_int64(st, i++);
    r->env = silt_db_column_dup(st, i++, &r->env_len);
    r->labels = silt_db_column_dup(st, i++, &labels_len);
    r->sleep_after_s = sqlite3_column_int64(st, i++);
    r->created_ms = sqlite3_column_int64(st, i++);
    r->started_ms = sqlite3_column_int64(st, i++);
    r->used_ms = sqlite3_column_int64(st, i++);
    silt_db_column_text(st, i++, r->incarnation, sizeof(r->incarnation));
    silt_db_column_text(st, i++, r->death.cause, sizeof(r->death.cause));
    silt_db_column_text(st, i++, r->death.message, sizeof(r->death.message));
    r->death.at_ms = sqlite3_column_int64(st, i++);
    r->death.exit_code = sqlite3_column_int(st, i++);
    r->death.signal = sqlite3_column_int(st, i++);
    r->death.limit_bytes = (uint64_t)sqlite3_column_int64(st, i++);
    r->death.peak_bytes = (uint64_t)sqlite3_column_int64(st, i++);
    int network = sqlite3_column_int(st, i++);
    r->network =
        network >= 0 && network < SILT_NET_MODE_MAX ? (enum silt_net_mode)network : SILT_NET_NONE;
    r->stop_after_s = sqlite3_column_int64(st, i++);
    r->keep_alive = sqlite3_column_int(st, i++) != 0;
    r->let_sleep = sqlite3_column_int(st, i++) != 0;
    r->remove_after_stop = sqlite3_column_int(st, i++) != 0;
    r->expires_ms = sqlite3_column_int64(st, i++);
    r->paused_ms = sqlite3_column_int64(st, i++);
    r->auto_snapshot = sqlite3_column_int(st, i++) != 0;
    r->allow = silt_db_column_dup(st, i++, &labels_len);
    silt_db_column_text(st, i++, r->alias, sizeof(r->alias));
}

int silt_store_each_sandbox(struct silt_store *s, void (*each)(void *, struct silt_sandbox_row *),
                            void *context, struct silt_error *e)
{
    sqlite3_stmt *st = s->statements[SILT_DB_EACH_SANDBOX];
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct silt_sandbox_row row = {0};
        read_sandbox(st, &row);
        each(context, &row);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : silt_db_fail(s->db, e, "read sandboxes");
}

int silt_store_checkpoint(struct silt_store *s, struct silt_error *e)
{
    int rc =
        sqlite3_wal_checkpoint_v2(s->checkpointer, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return rc == SQLITE_OK || rc == SQLITE_BUSY ? 0
                                                : silt_db_fail(s->checkpointer, e, "checkpoint");
}
