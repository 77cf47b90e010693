/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: the row is saved after the files exist. If siltd dies in between, the next one finds
 * an image without a name or a snapshot and removes it. */
#include "sandbox/image/snapshot.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/json.h"
#include "sandbox/core/facet.h"
#include "sandbox/core/journal.h"
#include "sandbox/core/recovery.h"
#include "sandbox/image/seal.h"
#include "store/recovery.h"

#include <stdlib.h>

/* More than a recovery record has: the variables of a sandbox fit. */
enum { RECORD_MAX = 256 << 10 };

struct taking {
    struct silt_snapshot_row row;
    silt_snapshot_taken *on_taken;
    void *context;
    int64_t begun_us;
};

static void free_taking(struct taking *t)
{
    silt_snapshot_row_fini(&t->row);
    free(t);
}

static void add(struct silt_image *i, const struct silt_snapshot_row *row)
{
    i->snapshot = malloc(sizeof(*row));
    if (i->snapshot == NULL)
        abort();
    *i->snapshot = *row;
    silt_map_put(&i->registry->snapshots, silt_slice_of(i->snapshot->id), i);
}

/* Takes the strings of the row. */
static int keep(struct silt_image *i, struct silt_snapshot_row *row, struct silt_error *e)
{
    memcpy(row->digest, i->row.digest, sizeof(row->digest));
    row->bytes = i->row.bytes;
    if (silt_store_put_snapshot(i->registry->store, row, e) < 0)
        return -1;
    add(i, row);
    *row = (struct silt_snapshot_row){0};
    silt_recovery_on_image(i->registry, i->row.digest);
    return 0;
}

static void report(const struct silt_image *i)
{
    silt_auto_buf b;
    silt_buf_init(&b, 256);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "snapshot", i->snapshot->id);
    silt_json_close(&b, '}');
    silt_journal_add(i->registry, i->snapshot->sandbox, SILT_EVENT_SNAPSHOT, silt_buf_slice(&b));
}

static void trim(struct silt_image *newest);

static void on_sealed(void *context, struct silt_image *image, const struct silt_error *e)
{
    struct taking *t = context;
    struct silt_error why;
    if (image != NULL && keep(image, &t->row, &why) < 0) {
        image = NULL;
        e = &why;
    }
    if (image != NULL) {
        silt_timing_end(image->registry, SILT_TIMING_SNAPSHOT, t->begun_us);
        if (image->snapshot->automatic)
            trim(image);
        else
            report(image);
    }
    t->on_taken(t->context, image, e);
    free_taking(t);
}

/* What a sandbox that is made of it begins with; ports and their tokens stay with the sandbox. */
static int write_record(const struct silt_sandbox *s, struct silt_snapshot_row *row,
                        struct silt_error *e)
{
    struct silt_recovery_sandbox out = {.row = s->row};
    silt_auto_buf b;
    out.row.alias[0] = 0;
    silt_buf_init(&b, RECORD_MAX);
    if (silt_recovery_write_sandbox(&b, &out, e) < 0)
        return silt_because(e, "take a snapshot of %s", s->row.id);
    row->record_len = b.len;
    row->record = malloc(b.len);
    if (row->record == NULL)
        abort();
    memcpy(row->record, b.data, b.len);
    return 0;
}

/* Those under way count, too. */
static int check_count(const struct silt_sandbox *s, struct silt_error *e)
{
    const struct silt_registry *r = s->registry;
    size_t at = 0, count = s->seals;
    for (const struct silt_image *i = silt_map_next(&r->snapshots, &at); i != NULL;
         i = silt_map_next(&r->snapshots, &at))
        count += !i->snapshot->automatic && strcmp(i->snapshot->sandbox, s->row.id) == 0;
    return count < SILT_SNAPSHOTS_EACH_MAX
               ? 0
               : silt_fail(e, SILT_LIMIT, "sandbox '%s' has %d snapshots already", s->row.id,
                           SILT_SNAPSHOTS_EACH_MAX);
}

int silt_snapshot_take(struct silt_sandbox *s, const struct silt_snapshot_options *o,
                       silt_snapshot_taken *on_taken, void *context, struct silt_error *e)
{
    if ((!o->automatic && check_count(s, e) < 0) || silt_store_admit(s->registry->store, e) < 0)
        return -1;
    struct taking *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    t->on_taken = on_taken;
    t->context = context;
    t->begun_us = silt_clock_us();
    t->row.automatic = o->automatic;
    t->row.created_ms = silt_clock_wall_ms();
    t->row.expires_ms = o->ttl_s > 0 ? t->row.created_ms + o->ttl_s * 1000 : 0;
    memcpy(t->row.id, "snap_", 5);
    silt_id_random(t->row.id + 5, SILT_SNAPSHOT_ID_SIZE - 6);
    memcpy(t->row.sandbox, s->row.id, sizeof(t->row.sandbox));
    if (o->name.len > 0)
        t->row.name = strndup(o->name.data, o->name.len);
    struct silt_seal_options how = {.soon = true,
                                    .since = o->since != NULL ? o->since->row.digest : NULL};
    if (write_record(s, &t->row, e) < 0 || silt_image_seal(s, &how, on_sealed, t, NULL, e) < 0) {
        free_taking(t);
        return -1;
    }
    return 0;
}

struct silt_image *silt_snapshot_find(const struct silt_registry *r, silt_slice id)
{
    return silt_map_find(&r->snapshots, id);
}

int silt_snapshot_delete(struct silt_image *i, struct silt_error *e)
{
    struct silt_registry *r = i->registry;
    struct silt_snapshot_row *row = i->snapshot;
    if (silt_store_remove_snapshot(r->store, row->id, e) < 0)
        return -1;
    (void)silt_map_remove(&r->snapshots, silt_slice_of(row->id));
    i->snapshot = NULL;
    silt_snapshot_row_fini(row);
    free(row);
    silt_recovery_on_image(r, i->row.digest);
    silt_image_forget_unused(r, i->row.digest);
    return 0;
}

/* ---- automatic ones ---- */

/* The oldest one of the sandbox, but for `newest`; of all if `id` is NULL. */
static struct silt_image *find_oldest(const struct silt_registry *r, const char *id,
                                      const struct silt_image *newest, size_t *ret_count)
{
    struct silt_image *oldest = NULL;
    size_t at = 0;
    *ret_count = 0;
    for (struct silt_image *i = silt_map_next(&r->snapshots, &at); i != NULL;
         i = silt_map_next(&r->snapshots, &at)) {
        const struct silt_snapshot_row *row = i->snapshot;
        if (!row->automatic || (id != NULL && strcmp(row->sandbox, id) != 0))
            continue;
        (*ret_count)++;
        if (i != newest && (oldest == NULL || row->created_ms < oldest->snapshot->created_ms))
            oldest = i;
    }
    return oldest;
}

static bool delete_oldest(struct silt_registry *r, const char *id, const struct silt_image *newest,
                          size_t more_than)
{
    struct silt_error e;
    size_t count;
    struct silt_image *i = find_oldest(r, id, newest, &count);
    if (i == NULL || count <= more_than)
        return false;
    if (silt_snapshot_delete(i, &e) == 0)
        return true;
    silt_log(SILT_LOG_WARN, "snapshot.kept", "error=\"%s\"", e.text);
    return false; /* a full disk: the next one tries again */
}

/* What they keep counts against the disk of their sandbox: near its limit half of them go. */
static void trim(struct silt_image *newest)
{
    struct silt_registry *r = newest->registry;
    const char *id = newest->snapshot->sandbox;
    const struct silt_sandbox *s = silt_registry_find(r, silt_slice_of(id));
    size_t most = SILT_AUTOMATIC_MAX, count;
    if (s != NULL && newest->row.bytes > s->row.limits.disk_bytes / 8 * 7) {
        (void)find_oldest(r, id, newest, &count);
        most = count / 2 > 0 ? count / 2 : 1;
    }
    while (delete_oldest(r, id, newest, most))
        continue;
}

void silt_snapshots_delete_automatic(struct silt_registry *r, const char *sandbox)
{
    while (delete_oldest(r, sandbox, NULL, 0))
        continue;
}

static void make_room(struct silt_registry *r)
{
    (void)delete_oldest(r, NULL, NULL, 0);
}

/* ---- start of siltd, expiry ---- */

static void open_map(struct silt_registry *r)
{
    silt_map_init(&r->snapshots);
}

static void load_one(void *context, struct silt_snapshot_row *row)
{
    struct silt_registry *r = context;
    struct silt_image *i = silt_image_by_digest(r, row->digest);
    if (i != NULL && i->snapshot == NULL) {
        add(i, row);
        return;
    }
    silt_log(SILT_LOG_ERROR, "snapshot.lost", "snapshot=%s reason=\"its image is gone\"", row->id);
    silt_snapshot_row_fini(row);
}

static int load(struct silt_registry *r, struct silt_error *e)
{
    return silt_store_each_snapshot(r->store, load_one, r, e);
}

/* One per turn: deleting changes the map. */
static struct silt_image *find_expired(const struct silt_registry *r)
{
    int64_t now_ms = silt_clock_wall_ms();
    size_t at = 0;
    for (struct silt_image *i = silt_map_next(&r->snapshots, &at); i != NULL;
         i = silt_map_next(&r->snapshots, &at))
        if (i->snapshot->expires_ms != 0 && i->snapshot->expires_ms <= now_ms)
            return i;
    return NULL;
}

static void remove_expired(struct silt_registry *r)
{
    struct silt_error e;
    for (struct silt_image *i = find_expired(r); i != NULL; i = find_expired(r)) {
        silt_log(SILT_LOG_INFO, "snapshot.expire", "snapshot=%s", i->snapshot->id);
        if (silt_snapshot_delete(i, &e) < 0)
            return; /* a full disk: the next turn tries again */
    }
}

/* After the sandboxes, before the images. */
static void free_map(struct silt_registry *r)
{
    silt_map_fini(&r->snapshots);
}

const struct silt_facet silt_snapshot_facet = {.open = open_map,
                                               .load = load,
                                               .upkeep = remove_expired,
                                               .make_room = make_room,
                                               .free = free_map};
