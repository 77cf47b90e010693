/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/recovery.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/core/image.h"
#include "sandbox/core/sandbox.h"
#include "store/recovery.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

/* What changed. Its present state is looked up when it is sent. */
struct change {
    struct silt_link link;
    bool last; /* an end marker: all missing records were written before it */
    struct silt_priv_recovery what;
};

struct silt_recovery {
    struct silt_registry *registry; /* borrowed */
    struct silt_link waiting;       /* struct change, oldest first */
    struct change *asked;           /* request in flight; NULL: none */
};

/* ---- encoding ---- */

static int write_sandbox(const struct silt_sandbox *s, int *ret_fd, struct silt_error *e)
{
    struct silt_port_row ports[SILT_RECOVERY_PORTS_MAX];
    struct silt_recovery_sandbox out = {.row = s->row, .ports = ports};
    silt_auto_buf b;
    silt_buf_init(&b, SILT_RECOVERY_MAX);
    silt_list_each(it, &s->entrances)
    {
        const struct silt_exposed_port *x = silt_outer(it, struct silt_exposed_port, link);
        if (x->row.token[0] != 0 && out.port_count < SILT_RECOVERY_PORTS_MAX)
            ports[out.port_count++] = x->row;
    }
    return silt_recovery_write_sandbox(&b, &out, e) < 0
               ? -1
               : silt_fd_seal(silt_buf_slice(&b), ret_fd, e);
}

static int write_image(const struct silt_image *i, int *ret_fd, struct silt_error *e)
{
    struct silt_recovery_image out = {.row = i->row};
    if (i->snapshot != NULL)
        out.snapshot = *i->snapshot;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_RECOVERY_IMAGE_MAX);
    size_t count = 0;
    silt_list_each(it, &i->names) count++;
    silt_auto_free char(*names)[SILT_IMAGE_NAME_SIZE] = calloc(count + 1, sizeof(*names));
    if (names == NULL)
        abort();
    silt_list_each(it, &i->names) if (out.name_count < SILT_RECOVERY_NAMES_MAX)
        memcpy(names[out.name_count++], silt_outer(it, struct silt_image_name, link)->text,
               sizeof(*names));
    out.names = names;
    return silt_recovery_write_image(&b, &out, e) < 0 ? -1
                                                      : silt_fd_seal(silt_buf_slice(&b), ret_fd, e);
}

int silt_recovery_of_sandbox(const struct silt_sandbox *s)
{
    struct silt_error e;
    int fd = -1;
    if (write_sandbox(s, &fd, &e) < 0)
        silt_log(SILT_LOG_ERROR, "recovery.write", "sandbox=%s error=\"%s\"", s->row.id, e.text);
    return fd;
}

/* ---- changes ---- */

static void ask_next(struct silt_recovery *v);

static void on_recorded(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_recovery *v = context;
    struct change *c = silt_take_ptr(v->asked);
    (void)fds;
    (void)nfds;
    struct silt_sandbox *s =
        c->what.kind == SILT_RECOVERY_SANDBOX ? v->registry->by_slot[c->what.slot] : NULL;
    /* Retry with the next silt-priv. */
    if (!a->ok && a->body.error.code == SILT_INTERRUPTED) {
        silt_list_append(v->waiting.next, &c->link);
    } else {
        if (!a->ok)
            silt_log(SILT_LOG_ERROR, "recovery.write", "slot=%u error=\"%s\"", c->what.slot,
                     a->body.error.text);
        free(c);
    }
    if (s != NULL)
        silt_sandbox_on_recorded(s);
    ask_next(v);
}

/* False: nothing to do. *ret_fd -1: remove the record. */
static bool look_up(struct silt_recovery *v, const struct change *c, int *ret_fd)
{
    struct silt_error e;
    *ret_fd = -1;
    if (c->what.kind == SILT_RECOVERY_SANDBOX) {
        const struct silt_sandbox *s = v->registry->by_slot[c->what.slot];
        if (s == NULL || s->row.id[0] == 0 || s->state == SILT_SANDBOX_DESTROYING)
            return false; /* a ready one has no record; a destroyed one's goes with it */
        *ret_fd = silt_recovery_of_sandbox(s);
        return *ret_fd >= 0;
    }
    const struct silt_image *i = silt_image_by_digest(v->registry, c->what.digest);
    if (i == NULL || write_image(i, ret_fd, &e) == 0)
        return true;
    silt_log(SILT_LOG_ERROR, "recovery.write", "kind=image error=\"%s\"", e.text);
    return false;
}

static void ask(struct silt_recovery *v, struct change *c, int fd)
{
    struct silt_priv_request q = {.op = SILT_PRIV_RECORD, .slot = c->what.slot};
    q.body.recovery = c->what;
    v->asked = c;
    silt_priv_ask(v->registry->priv, &q, &fd, fd >= 0 ? 1 : 0, on_recorded, v);
}

static void note_all_written(struct silt_recovery *v)
{
    struct silt_error e;
    if (silt_store_set_records(v->registry->store, SILT_RECORDS_KEPT, &e) < 0)
        silt_log(SILT_LOG_ERROR, "recovery.write", "error=\"%s\"", e.text);
}

static void ask_next(struct silt_recovery *v)
{
    while (v->asked == NULL && !silt_list_empty(&v->waiting)) {
        struct change *c = silt_list_first(&v->waiting, struct change, link);
        int fd = -1;
        silt_list_remove(&c->link);
        if (c->last)
            note_all_written(v);
        else if (look_up(v, c, &fd)) {
            ask(v, c, fd);
            return;
        }
        free(c);
    }
}

static bool waits(const struct silt_recovery *v, const struct silt_priv_recovery *what)
{
    silt_list_each(it, &v->waiting)
    {
        const struct change *c = silt_outer(it, struct change, link);
        if (!c->last && memcmp(&c->what, what, sizeof(*what)) == 0)
            return true;
    }
    return false;
}

static void add(struct silt_recovery *v, const struct silt_priv_recovery *what, bool last)
{
    struct change *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    *c = (struct change){.last = last, .what = *what};
    silt_list_init(&c->link);
    silt_list_append(&v->waiting, &c->link);
}

static void on_change(struct silt_registry *r, const struct silt_priv_recovery *what)
{
    struct silt_recovery *v = r->recovery;
    if (waits(v, what))
        return;
    add(v, what, false);
    ask_next(v);
}

void silt_recovery_on_sandbox(struct silt_sandbox *s)
{
    struct silt_priv_recovery what = {.kind = SILT_RECOVERY_SANDBOX, .slot = s->row.slot};
    if (s->unrecorded)
        s->record_stale = true; /* its first record is being written */
    else
        on_change(s->registry, &what);
}

void silt_recovery_on_image(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE])
{
    struct silt_priv_recovery what = {.kind = SILT_RECOVERY_IMAGE};
    memcpy(what.digest, digest, SILT_DIGEST_SIZE);
    on_change(r, &what);
}

bool silt_recovery_is_busy(const struct silt_registry *r, uint32_t slot)
{
    const struct change *c = r->recovery->asked;
    return c != NULL && c->what.kind == SILT_RECOVERY_SANDBOX && c->what.slot == slot;
}

/* ---- start and exit of siltd ---- */

struct silt_recovery *silt_recovery_new(struct silt_registry *r)
{
    struct silt_recovery *v = calloc(1, sizeof(*v));
    if (v == NULL)
        abort();
    v->registry = r;
    silt_list_init(&v->waiting);
    return v;
}

static void add_images(struct silt_recovery *v)
{
    silt_list_each(it, &v->registry->images)
    {
        struct silt_priv_recovery what = {.kind = SILT_RECOVERY_IMAGE};
        memcpy(what.digest, silt_outer(it, struct silt_image, link)->row.digest, SILT_DIGEST_SIZE);
        add(v, &what, false);
    }
}

static void add_sandboxes(struct silt_recovery *v)
{
    for (uint32_t i = 0; i < v->registry->settings.slots; i++)
        if (v->registry->by_slot[i] != NULL)
            add(v, &(struct silt_priv_recovery){.kind = SILT_RECOVERY_SANDBOX, .slot = i}, false);
    add(v, &(struct silt_priv_recovery){0}, true);
}

int silt_recovery_begin(struct silt_registry *r, struct silt_error *e)
{
    struct silt_recovery *v = r->recovery;
    enum silt_store_records state;
    if (silt_store_records(r->store, &state, e) < 0)
        return -1;
    /* At every start: they are few, and the pool may not be the one the database was used with
     * before. */
    add_images(v);
    if (state != SILT_RECORDS_KEPT)
        add_sandboxes(v);
    ask_next(v);
    return 0;
}

void silt_recovery_free(struct silt_recovery *v)
{
    while (!silt_list_empty(&v->waiting)) {
        struct change *c = silt_list_first(&v->waiting, struct change, link);
        silt_list_remove(&c->link);
        free(c);
    }
    free(v->asked);
    free(v);
}
