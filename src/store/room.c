/* SPDX-License-Identifier: Apache-2.0 */
/* room: disk space reserved for the database, so that it can be written on a disk with no byte
 * left. The WAL is allocated ahead of its end, and the database keeps free pages of its own, so
 * that a checkpoint does not have to extend its file. New rows are admitted only while the reserve
 * is complete: the rest of it is for rows that change or go. */
#include "base/log.h"
#include "base/own.h"
#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
    PAGE = 4096,          /* SQLite's default */
    FRAME = PAGE + 24,    /* a page in the WAL */
    PAGE_BODY = PAGE - 4, /* what a page holds of a large value */
    ROW_PAGES = 8,        /* what its row may need besides */
    ADDED_MAX = 1 << 20,  /* what new rows may write before the reserve is checked again */
    WAL_AHEAD = 8 << 20,
    /* Enough on a full disk: after the next checkpoint the WAL starts over. */
    WAL_LEAST = WAL_AHEAD - 2 * ADDED_MAX,
    FREE_PAGES = ADDED_MAX / PAGE, /* the database has room for all that new rows have written */
    PATH_SIZE = 4096,
};

static int on_commit(void *context, sqlite3 *db, const char *name, int frames)
{
    struct silt_room *room = context;
    uint64_t used = (uint64_t)frames * FRAME;
    (void)db;
    (void)name;
    room->written +=
        used > room->wal_used ? used - room->wal_used : used; /* less: the WAL was reset */
    room->wal_used = used;
    return SQLITE_OK;
}

void silt_room_open(struct silt_store *s, const char *path)
{
    struct silt_room *room = &s->room;
    char wal[PATH_SIZE];
    (void)snprintf(wal, sizeof(wal), "%s-wal", path);
    room->wal = open(wal, O_WRONLY | O_CLOEXEC);
    (void)sqlite3_wal_hook(s->db, on_commit, room);
}

void silt_room_init(struct silt_room *room, const char *path)
{
    room->wal = -1;
    room->file = open(path, O_WRONLY | O_CLOEXEC | O_CREAT, 0600);
}

void silt_room_fini(struct silt_room *room)
{
    silt_close_fd(&room->wal);
    silt_close_fd(&room->file);
}

static int allocate(int fd, uint64_t bytes, struct silt_error *e)
{
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0 || errno == EOPNOTSUPP)
        return 0; /* not supported here: then each write has to find its own space */
    return silt_fail_errno(e, "reserve room for the database");
}

static int allocate_wal(const struct silt_room *room, struct silt_error *e)
{
    return allocate(room->wal, room->wal_used + WAL_AHEAD, e) == 0
               ? 0
               : allocate(room->wal, room->wal_used + WAL_LEAST, e);
}

static uint64_t read_number(sqlite3 *db, const char *pragma)
{
    sqlite3_stmt *st = NULL;
    uint64_t number = 0;
    if (sqlite3_prepare_v2(db, pragma, -1, &st, NULL) == SQLITE_OK
        && sqlite3_step(st) == SQLITE_ROW)
        number = (uint64_t)sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    return number;
}

/* Two transactions: pages that one transaction allocates and frees are never written. */
static int stock_pages(struct silt_store *s, struct silt_error *e)
{
    uint64_t pages = read_number(s->db, "PRAGMA page_count"),
             unused = read_number(s->db, "PRAGMA freelist_count");
    uint64_t missing =
        unused < FREE_PAGES ? 2 * FREE_PAGES - unused : 0; /* some more, so that this is rare */
    char text[128];
    uint64_t more = missing > 0 ? missing + ROW_PAGES : 0;
    if (allocate(s->room.file, (pages + more) * PAGE, e) < 0) /* fills holes, too */
        return -1;
    if (missing == 0)
        return 0;
    (void)snprintf(text, sizeof(text), "INSERT OR REPLACE INTO meta VALUES('room', zeroblob(%llu))",
                   (unsigned long long)missing * PAGE_BODY);
    if (sqlite3_exec(s->db, text, NULL, NULL, NULL) != SQLITE_OK
        || sqlite3_exec(s->db, "DELETE FROM meta WHERE name='room'", NULL, NULL, NULL) != SQLITE_OK)
        return silt_db_fail(s->db, e, "reserve room in the database");
    return 0;
}

static int reserve(struct silt_store *s, struct silt_error *e)
{
    struct silt_room *room = &s->room;
    if (room->wal < 0 || room->file < 0)
        return 0;
    if (allocate_wal(room, e) < 0 || stock_pages(s, e) < 0)
        return -1;
    return allocate_wal(room, e); /* the new pages went through the WAL */
}

int silt_store_reserve(struct silt_store *s, struct silt_error *e)
{
    bool was = s->room.full;
    int done = reserve(s, e);
    s->room.full = done < 0;
    if (done == 0)
        s->room.written = 0;
    if (done < 0 && !was)
        silt_log(SILT_LOG_ERROR, "store.full", "error=\"%s\"", e->text);
    else if (done == 0 && was)
        silt_log(SILT_LOG_INFO, "store.room", "reserved=%d", WAL_AHEAD);
    return done;
}

bool silt_store_is_full(const struct silt_store *s)
{
    return s->room.full;
}

int silt_store_admit(struct silt_store *s, struct silt_error *e)
{
    struct silt_error why;
    if (!s->room.full && (s->room.written < ADDED_MAX || silt_store_reserve(s, &why) == 0))
        return 0;
    return silt_fail(
        e, SILT_NO_SPACE,
        "the machine's disk is full: the database has no room for more. Free room on the disk");
}
