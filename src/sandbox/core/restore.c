/* SPDX-License-Identifier: Apache-2.0 */
/* restore: when siltd starts with a new database, rebuilds its rows from the recovery records that
 * silt-priv keeps. It never deletes files: those without a usable record (missing, damaged, or with
 * a duplicate id) become a sandbox `recovered-<slot>`. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/core/recovery.h"
#include "store/recovery.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEADLINE_MS = 60000 };

struct restoring {
    struct silt_registry *registry;
    int priv;
    struct silt_map ids; /* of restored sandboxes: keys, any value */
    struct silt_arena arena;
    uint8_t digest[SILT_DIGEST_SIZE]; /* of the default image; zeros: not found */
    uint32_t sandboxes, images, unknown, skipped;
};

/* ---- silt-priv ---- */

static int ask(struct restoring *g, const struct silt_priv_request *q, int *ret_fd,
               struct silt_error *e)
{
    struct silt_priv_answer a;
    struct silt_parcel out = {.data = (void *)(uintptr_t)q, .len = sizeof(*q)},
                       in = {.data = &a, .len = sizeof(a)};
    struct pollfd wait = {.fd = g->priv, .events = POLLIN};
    if (silt_fd_send(g->priv, &out, e) < 0)
        return -1;
    if (poll(&wait, 1, DEADLINE_MS) <= 0)
        return silt_fail(e, SILT_TIMEOUT, "silt-priv: no answer in time");
    int got = silt_fd_recv(g->priv, &in, e);
    if (got <= 0 || in.len != sizeof(a)) {
        silt_parcel_close(&in);
        return got < 0 ? -1
                       : silt_fail(e, SILT_INTERRUPTED, "silt-priv: restarted before it answered");
    }
    if (a.ok && in.nfds == 1 && ret_fd != NULL)
        *ret_fd = silt_take_fd(&in.fds[0]);
    bool missing = ret_fd != NULL && in.nfds != 1;
    in.nfds = a.ok && ret_fd != NULL && !missing ? 0 : in.nfds;
    silt_parcel_close(&in);
    if (a.ok)
        return missing ? silt_fail(e, SILT_PROTOCOL, "silt-priv sent no descriptor") : 0;
    *e = a.body.error;
    return -1;
}

/* The contents from the beginning, at most `max` bytes; the caller frees them. */
static int read_all(int fd, size_t max, char **ret, size_t *ret_len, struct silt_error *e)
{
    off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0)
        return silt_fail_errno(e, "read recovery records");
    if ((uint64_t)size > max)
        return silt_fail(e, SILT_LIMIT, "recovery record of %lld bytes, at most %zu",
                         (long long)size, max);
    silt_auto_free char *bytes = malloc((size_t)size + 1);
    if (bytes == NULL)
        abort();
    if (pread(fd, bytes, (size_t)size, 0) != size)
        return silt_fail(e, SILT_INTERNAL, "recovery records could not be read");
    *ret_len = (size_t)size;
    *ret = silt_take_ptr(bytes);
    return 0;
}

/* 1: it is damaged, and `ret_why` says how. */
static int read_record(struct restoring *g, const struct silt_priv_recovery *what, char **ret,
                       size_t *ret_len, struct silt_error *ret_why, struct silt_error *e)
{
    size_t max = what->kind == SILT_RECOVERY_IMAGE ? SILT_RECOVERY_IMAGE_MAX : SILT_RECOVERY_MAX;
    struct silt_priv_request q = {.op = SILT_PRIV_READ_RECORD, .slot = what->slot};
    silt_auto_fd fd = -1;
    q.body.recovery = *what;
    if (ask(g, &q, &fd, e) < 0)
        return -1;
    return read_all(fd, max, ret, ret_len, ret_why) < 0 ? 1 : 0;
}

/* ---- images ---- */

static int put_image(struct restoring *g, const struct silt_recovery_image *i, struct silt_error *e)
{
    struct silt_store *store = g->registry->store;
    if (silt_store_put_image(store, &i->row, e) < 0)
        return -1;
    for (size_t k = 0; k < i->name_count; k++) {
        if (silt_store_put_image_name(store, i->names[k], i->row.digest, e) < 0)
            return -1;
        if (strcmp(i->names[k], g->registry->settings.image) == 0)
            memcpy(g->digest, i->row.digest, sizeof(g->digest));
    }
    g->images++;
    if (i->snapshot.id[0] == 0)
        return 0;
    struct silt_snapshot_row snapshot = i->snapshot;
    memcpy(snapshot.digest, i->row.digest, sizeof(snapshot.digest));
    return silt_store_put_snapshot(store, &snapshot, e);
}

/* Its parent may follow later or be lost; using the image then reports that. */
static int restore_image(struct restoring *g, const struct silt_priv_recovery *what,
                         struct silt_error *e)
{
    struct silt_recovery_image image = {0};
    struct silt_error why;
    silt_auto_free char *bytes = NULL;
    size_t len = 0;
    int got = read_record(g, what, &bytes, &len, &why, e);
    if (got < 0)
        return -1;
    bool good = got == 0 && silt_recovery_read_image((silt_slice){bytes, len}, &image, &why) == 0;
    bool has_files =
        what->files
        || (!image.row.layered
            && memcmp(image.row.parent, (uint8_t[SILT_DIGEST_SIZE]){0}, SILT_DIGEST_SIZE) != 0);
    int done = 0;
    if (good && has_files)
        done = put_image(g, &image, e);
    else {
        g->skipped++;
        silt_log(SILT_LOG_ERROR, "recovery.skip", "kind=image reason=\"%s\"",
                 good ? "its files are gone" : why.text);
    }
    silt_recovery_image_fini(&image);
    return done;
}

/* ---- sandboxes ---- */

static bool is_taken(struct restoring *g, const char *id)
{
    return silt_map_find(&g->ids, silt_slice_of(id)) != NULL;
}

static int put_sandbox(struct restoring *g, struct silt_recovery_sandbox *s, struct silt_error *e)
{
    struct silt_store *store = g->registry->store;
    s->row.running = true; /* if silt-super does not have it, the registry records its end */
    s->row.started_ms = s->row.used_ms = s->row.created_ms;
    if (silt_store_put_policy(store, &s->row, e) < 0
        || (s->row.alias[0] != 0 && silt_store_put_alias(store, &s->row, e) < 0))
        return -1;
    for (size_t i = 0; i < s->port_count; i++) {
        s->ports[i].slot = s->row.slot;
        if (silt_store_put_port(store, &s->ports[i], e) < 0)
            return -1;
    }
    char *id = silt_arena_dup(&g->arena, silt_slice_of(s->row.id));
    if (id == NULL)
        return silt_fail(e, SILT_LIMIT, "too many sandboxes");
    silt_map_put(&g->ids, silt_slice_of(id), g);
    g->sandboxes++;
    return 0;
}

/* Files of which only the slot is known. */
static int put_unknown(struct restoring *g, uint32_t slot, const char *why, struct silt_error *e)
{
    struct silt_recovery_sandbox s = {
        .row = {.slot = slot,
                .network = SILT_NET_NONE,
                .created_ms = silt_clock_wall_ms(),
                .limits = *silt_type_find(silt_slice_of(g->registry->settings.type)),
                .death = {.exit_code = -1}}};
    (void)snprintf(s.row.id, sizeof(s.row.id), "recovered-%u", slot);
    for (unsigned more = 2; is_taken(g, s.row.id); more++)
        (void)snprintf(s.row.id, sizeof(s.row.id), "recovered-%u-%u", slot, more);
    (void)snprintf(s.row.image, sizeof(s.row.image), "%s", g->registry->settings.image);
    (void)snprintf(s.row.type, sizeof(s.row.type), "%s", g->registry->settings.type);
    memcpy(s.row.digest, g->digest, sizeof(s.row.digest));
    silt_log(SILT_LOG_ERROR, "recovery.unknown", "slot=%u sandbox=%s reason=\"%s\"", slot, s.row.id,
             why);
    g->unknown++;
    return put_sandbox(g, &s, e);
}

static void close_what_was_left_out(struct silt_recovery_sandbox *s)
{
    if (s->env_left_out)
        silt_log(SILT_LOG_WARN, "recovery.left_out",
                 "sandbox=%s reason=\"its variables were too many for the record\"", s->row.id);
    if (!s->allow_left_out)
        return;
    s->row.network = SILT_NET_NONE;
    silt_log(SILT_LOG_WARN, "recovery.left_out",
             "sandbox=%s reason=\"its network rules were too many for the record: it has no "
             "network now\"",
             s->row.id);
}

static int restore_sandbox(struct restoring *g, const struct silt_priv_recovery *what,
                           struct silt_error *e)
{
    struct silt_recovery_sandbox s = {0};
    struct silt_error why;
    silt_auto_free char *bytes = NULL;
    size_t len = 0;
    int done;
    if (!what->record)
        return put_unknown(g, what->slot, "it has files and no record", e);
    int got = read_record(g, what, &bytes, &len, &why, e);
    if (got < 0)
        return -1;
    bool good = got == 0 && silt_recovery_read_sandbox((silt_slice){bytes, len}, &s, &why) == 0;
    if (!good || s.row.id[0] == 0)
        done = put_unknown(g, what->slot, good ? "its record has no id" : why.text, e);
    else if (is_taken(g, s.row.id))
        done = put_unknown(g, what->slot, "another slot has a record of the same id", e);
    else {
        s.row.slot = what->slot;
        close_what_was_left_out(&s);
        done = put_sandbox(g, &s, e);
    }
    silt_recovery_sandbox_fini(&s);
    return done;
}

/* A sandbox that was being created or destroyed. */
static int drop_record(struct restoring *g, const struct silt_priv_recovery *what,
                       struct silt_error *e)
{
    struct silt_priv_request q = {.op = SILT_PRIV_RECORD, .slot = what->slot};
    q.body.recovery = *what;
    silt_log(SILT_LOG_WARN, "recovery.skip", "slot=%u reason=\"it has a record and no files\"",
             what->slot);
    g->skipped++;
    return ask(g, &q, NULL, e);
}

/* A ready sandbox holds no client's files. If one still runs, it is destroyed again when silt-super
 * reports it. */
static int destroy_ready(struct restoring *g, uint32_t slot, struct silt_error *e)
{
    return ask(g, &(struct silt_priv_request){.op = SILT_PRIV_DESTROY, .slot = slot}, NULL, e);
}

static int restore_slot(struct restoring *g, const struct silt_priv_recovery *what,
                        struct silt_error *e)
{
    if (!what->files)
        return drop_record(g, what, e);
    return what->ready && !what->record ? destroy_ready(g, what->slot, e)
                                        : restore_sandbox(g, what, e);
}

/* ---- everything ---- */

/* Images first: unknown files get the default image. */
static int restore_all(struct restoring *g, const struct silt_priv_recovery *all, size_t count,
                       struct silt_error *e)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].kind == SILT_RECOVERY_IMAGE && restore_image(g, &all[i], e) < 0)
            return -1;
    for (size_t i = 0; i < count; i++) {
        if (all[i].kind != SILT_RECOVERY_SANDBOX || all[i].slot >= g->registry->settings.slots)
            continue;
        if (restore_slot(g, &all[i], e) < 0)
            return -1;
    }
    return silt_store_set_records(g->registry->store, SILT_RECORDS_UNWRITTEN, e);
}

static int list(struct restoring *g, char **ret, size_t *ret_len, struct silt_error *e)
{
    struct silt_priv_request q = {.op = SILT_PRIV_RECORDS};
    silt_auto_fd fd = -1;
    size_t most =
        ((size_t)g->registry->settings.slots + (1U << 20)) * sizeof(struct silt_priv_recovery);
    return ask(g, &q, &fd, e) < 0 ? -1 : read_all(fd, most, ret, ret_len, e);
}

static int restore(struct restoring *g, struct silt_error *e)
{
    struct silt_store *store = g->registry->store;
    struct silt_error ignored;
    silt_auto_free char *all = NULL;
    size_t len;
    if (list(g, &all, &len, e) < 0 || silt_store_begin(store, e) < 0)
        return -1;
    size_t count = len / sizeof(struct silt_priv_recovery);
    int done = restore_all(g, (const struct silt_priv_recovery *)(const void *)all, count, e);
    if (done < 0) {
        (void)silt_store_end(store, false, &ignored);
        return -1;
    }
    return silt_store_end(store, true, e);
}

int silt_registry_restore(struct silt_registry *r, int priv, struct silt_error *e)
{
    enum silt_store_records state;
    if (silt_store_records(r->store, &state, e) < 0)
        return -1;
    if (state != SILT_RECORDS_UNREAD)
        return 0;
    if (silt_type_find(silt_slice_of(r->settings.type)) == NULL)
        return silt_fail(e, SILT_INVALID, "setting type: unknown instance type '%s'",
                         r->settings.type);
    struct restoring g = {.registry = r, .priv = priv};
    silt_map_init(&g.ids);
    silt_arena_init(&g.arena, (size_t)r->settings.slots * (2 * SILT_ID_MAX) + (64 << 10));
    int done = restore(&g, e);
    silt_map_fini(&g.ids);
    silt_arena_fini(&g.arena);
    if (done == 0 && g.sandboxes + g.images + g.skipped > 0)
        silt_log(SILT_LOG_WARN, "recovery.restored", "sandboxes=%u images=%u unknown=%u skipped=%u",
                 g.sandboxes, g.images, g.unknown, g.skipped);
    return done < 0 ? silt_because(e, "restore the database from recovery records") : 0;
}
