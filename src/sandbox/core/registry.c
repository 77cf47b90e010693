/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/core/disk_full.h"
#include "sandbox/core/facet.h"
#include "sandbox/core/image.h"
#include "sandbox/core/network_choice.h"
#include "sandbox/core/ready_pool.h"
#include "sandbox/core/recovery.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

enum {
    UPKEEP_MS = 5000,
    PID_SHARE_PERCENT = 80,
};

static const struct {
    silt_slice name;
    struct silt_priv_limits limits;
} types[] = {
    {{"lite", 4}, {256 * MIB, 2 * GIB, 62, 256}},
    {{"basic", 5}, {1 * GIB, 4 * GIB, 250, 512}},
    {{"standard-1", 10}, {4 * GIB, 8 * GIB, 500, 1024}},
    {{"standard-2", 10}, {6 * GIB, 12 * GIB, 1000, 1024}},
    {{"standard-3", 10}, {8 * GIB, 16 * GIB, 2000, 1024}},
    {{"standard-4", 10}, {12 * GIB, 20 * GIB, 4000, 1024}},
};

const struct silt_priv_limits *silt_type_find(silt_slice name)
{
    for (size_t i = 0; i < SILT_COUNT(types); i++)
        if (silt_slice_eq(types[i].name, name))
            return &types[i].limits;
    return NULL;
}

uint64_t silt_registry_number(struct silt_registry *r)
{
    return ++r->next_number;
}

/* Slots and rows. */

static int take_slot(struct silt_registry *r, uint32_t *ret, struct silt_error *e)
{
    for (uint32_t i = 0; i < r->settings.slots; i++) {
        uint32_t slot = (r->next_slot + i) % r->settings.slots;
        if (r->by_slot[slot] != NULL)
            continue;
        r->next_slot = slot + 1;
        *ret = slot;
        return 0;
    }
    return silt_fail(e, SILT_LIMIT, "all %u sandboxes of this machine are in use",
                     r->settings.slots);
}

void silt_registry_free_slot(struct silt_registry *r, uint32_t slot)
{
    r->by_slot[slot] = NULL;
    r->slots_used--;
}

static void own_slot(struct silt_registry *r, struct silt_sandbox *s)
{
    r->by_slot[s->row.slot] = s;
    r->slots_used++;
}

static void index_by_id(struct silt_registry *r, struct silt_sandbox *s)
{
    silt_map_put(&r->by_id, silt_slice_of(s->row.id), s);
    s->indexed = true;
}

/* At pid_max the kernel refuses fork to everybody: leave room for the machine. */
static int check_room_for_processes(struct silt_error *e)
{
    char text[128] = "";
    unsigned long running, total, max;
    silt_auto_fd load = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    silt_auto_fd limit = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
    if (load < 0 || limit < 0 || read(load, text, sizeof(text) - 1) <= 0
        || sscanf(text, "%*s %*s %*s %lu/%lu", &running, &total) != 2)
        return 0;
    ssize_t n = read(limit, text, sizeof(text) - 1);
    if (n <= 0)
        return 0;
    text[n] = 0;
    max = strtoul(text, NULL, 10);
    if (max > 0 && total > max / 100 * PID_SHARE_PERCENT)
        return silt_fail(
            e, SILT_LIMIT,
            "the machine runs %lu of at most %lu processes; destroy sandboxes or raise "
            "kernel.pid_max",
            total, max);
    return 0;
}

static bool has_name(const struct silt_image *image, const char *name)
{
    silt_list_each(
        it, &image->names) if (strcmp(silt_outer(it, struct silt_image_name, link)->text, name)
                               == 0) return true;
    return false;
}

void silt_registry_set_image(struct silt_sandbox_row *row, const struct silt_image *image,
                             silt_slice asked)
{
    struct silt_error e;
    if (silt_reference_read(asked, row->image, &e) < 0 || !has_name(image, row->image))
        silt_image_title(image, row->image);
    memcpy(row->digest, image->row.digest, sizeof(row->digest));
    row->host_usr = image->row.host_usr;
}

void silt_registry_set_lifetime(struct silt_sandbox_row *row, const struct silt_lifetime *life)
{
    row->sleep_after_s = life->sleep_after_s;
    row->stop_after_s = life->stop_after_s;
    row->keep_alive = life->keep_alive;
    row->let_sleep = life->let_sleep;
    row->remove_after_stop = life->remove_after_stop;
    row->auto_snapshot = life->auto_snapshot;
    row->expires_ms = life->expires_ms;
}

static void fill_defaults(struct silt_sandbox_row *row, const struct silt_image *image,
                          silt_slice asked)
{
    silt_registry_set_image(row, image, asked);
    row->created_ms = silt_clock_wall_ms();
    row->used_ms = row->created_ms;
}

static int find_image(struct silt_registry *r, silt_slice name, struct silt_image **ret,
                      struct silt_error *e)
{
    *ret = silt_image_find(r, name, NULL);
    if (*ret != NULL)
        return 0;
    bool recipe = silt_slice_eq(name, SILT_LIT("base")) || silt_slice_eq(name, SILT_LIT("host"));
    return silt_fail(e, SILT_NOT_FOUND, "image '%.*s' does not exist; %s%.*s", (int)name.len,
                     name.data,
                     recipe ? "make it with: sudo silt image build "
                            : "silt image pull fetches one from a registry, silt image build -t "
                              "NAME DIR makes one from a Dockerfile",
                     recipe ? (int)name.len : 0, name.data);
}

static int new_sandbox(struct silt_registry *r, const struct silt_image *image, silt_slice asked,
                       struct silt_sandbox **ret, struct silt_error *e)
{
    uint32_t slot = 0;
    /* A full disk may have kept rows of the slot's former sandbox: this one must not inherit its
     * rules and ports. */
    if (check_room_for_processes(e) < 0 || take_slot(r, &slot, e) < 0
        || silt_store_remove_sandbox(r->store, slot, e) < 0)
        return -1;
    struct silt_sandbox *s = silt_sandbox_new(r, slot);
    fill_defaults(&s->row, image, asked);
    s->fresh = true;
    s->unrecorded = true;
    own_slot(r, s);
    *ret = s;
    return 0;
}

int silt_registry_new_sandbox(struct silt_registry *r, silt_slice asked, struct silt_sandbox **ret,
                              struct silt_error *e)
{
    struct silt_image *image;
    return find_image(r, asked, &image, e) < 0 ? -1 : new_sandbox(r, image, asked, ret, e);
}

/* The texts are the new row's own. */
static void copy_choices(struct silt_sandbox_row *row, const struct silt_sandbox_row *like)
{
    memcpy(row->image, like->image, sizeof(row->image));
    memcpy(row->type, like->type, sizeof(row->type));
    row->limits = like->limits;
    row->ephemeral = like->ephemeral;
    row->network = like->network;
    row->allow = like->allow != NULL ? strdup(like->allow) : NULL;
    row->labels = like->labels != NULL ? strdup(like->labels) : NULL;
    row->sleep_after_s = like->sleep_after_s;
    row->stop_after_s = like->stop_after_s;
    row->keep_alive = like->keep_alive;
    row->let_sleep = like->let_sleep;
    row->remove_after_stop = like->remove_after_stop;
    row->auto_snapshot = like->auto_snapshot;
    row->expires_ms = like->expires_ms;
    if (like->env_len == 0)
        return;
    row->env = malloc(like->env_len);
    if (row->env == NULL)
        abort();
    memcpy(row->env, like->env, like->env_len);
    row->env_len = like->env_len;
}

int silt_registry_new_fork(struct silt_registry *r, const char *id, const struct silt_image *image,
                           const struct silt_sandbox_row *like, struct silt_sandbox **ret,
                           struct silt_error *e)
{
    struct silt_sandbox *s;
    if (silt_registry_find(r, silt_slice_of(id)) != NULL)
        return silt_fail(e, SILT_CONFLICT, "sandbox '%s' already exists", id);
    if (silt_store_admit(r->store, e) < 0
        || new_sandbox(r, image, silt_slice_of(like->image), &s, e) < 0)
        return -1;
    (void)snprintf(s->row.id, sizeof(s->row.id), "%s", id);
    copy_choices(&s->row, like);
    s->network.unsaved = s->row.allow != NULL;
    index_by_id(r, s);
    *ret = s;
    return 0;
}

/* Use and create. */

static int name_sandbox(struct silt_registry *r, silt_slice id,
                        const struct silt_sandbox_options *o, struct silt_sandbox **ret,
                        struct silt_error *e)
{
    silt_slice image = o->image.len > 0 ? o->image : silt_slice_of(r->settings.image);
    if (silt_network_check(r, o, e) < 0 || silt_store_admit(r->store, e) < 0)
        return -1;
    struct silt_sandbox *s = silt_ready_pool_take(r, image, o);
    bool claimed = s != NULL;
    if (!claimed && silt_registry_new_sandbox(r, image, &s, e) < 0)
        return -1;
    s->unrecorded = true;
    memcpy(s->row.id, id.data, id.len);
    s->row.id[id.len] = 0;
    memcpy(s->row.type, o->type, sizeof(s->row.type));
    s->keep_limits = claimed && memcmp(&s->row.limits, &o->limits, sizeof(o->limits)) == 0;
    s->row.limits = o->limits;
    s->row.ephemeral = o->ephemeral;
    silt_network_choose(s, o);
    silt_registry_set_lifetime(&s->row, &o->life);
    s->row.created_ms = silt_clock_wall_ms();
    s->row.used_ms = s->row.created_ms;
    if (claimed) /* its processes began to wait before it was created */
        s->row.started_ms = s->row.created_ms;
    if (o->env.len > 0) {
        s->row.env = malloc(o->env.len);
        if (s->row.env == NULL)
            abort();
        memcpy(s->row.env, o->env.data, o->env.len);
        s->row.env_len = o->env.len;
    }
    if (o->labels.len > 0)
        s->row.labels = strndup(o->labels.data, o->labels.len);
    index_by_id(r, s);
    r->counts.created++;
    if (claimed)
        r->counts.claims++;
    *ret = s;
    return 0;
}

/* Forgets a sandbox that silt-priv does not know yet. */
static void take_back(struct silt_registry *r, struct silt_sandbox *s)
{
    (void)silt_map_remove(&r->by_id, silt_slice_of(s->row.id));
    silt_registry_free_slot(r, s->row.slot);
    silt_sandbox_forget(s);
}

static int begin(struct silt_sandbox *s, struct silt_waiter *w, struct silt_error *e)
{
    silt_sandbox_time(s, SILT_TIMING_CREATE);
    bool ready = s->state == SILT_SANDBOX_RUNNING; /* from the ready pool */
    silt_list_init(&w->link);
    /* Saved before anything is created that a restart must find. */
    if (!ready && silt_sandbox_store(s, e) < 0) {
        take_back(s->registry, s);
        return -1;
    }
    silt_list_append(&s->waiters, &w->link); /* before anything can fail */
    if (ready)
        silt_sandbox_claim(s); /* saved under its name when that is done */
    else
        silt_sandbox_start(s);
    return 0;
}

int silt_registry_create(struct silt_registry *r, silt_slice id,
                         const struct silt_sandbox_options *o, struct silt_waiter *w,
                         struct silt_error *e)
{
    struct silt_sandbox *s;
    if (silt_registry_find(r, id) != NULL)
        return silt_fail(e, SILT_CONFLICT, "sandbox '%.*s' already exists", (int)id.len, id.data);
    if (name_sandbox(r, id, o, &s, e) < 0)
        return -1;
    return begin(s, w, e);
}

void silt_registry_use(struct silt_registry *r, silt_slice id, struct silt_waiter *w)
{
    struct silt_sandbox *s = silt_registry_find(r, id);
    struct silt_sandbox_options o = {.limits = r->default_limits,
                                     .life = {.sleep_after_s = r->settings.sleep_after_s,
                                              .stop_after_s = r->settings.stop_after_s}};
    struct silt_error e;
    if (s != NULL) {
        silt_sandbox_wait(s, w);
        return;
    }
    memcpy(o.type, r->settings.type, sizeof(o.type));
    silt_list_init(&w->link);
    if (name_sandbox(r, id, &o, &s, &e) < 0 || begin(s, w, &e) < 0)
        w->on_ready(w, NULL, &e);
}

void silt_waiter_leave(struct silt_waiter *w)
{
    silt_list_remove(&w->link);
}

struct silt_sandbox *silt_registry_find(struct silt_registry *r, silt_slice id)
{
    return silt_map_find(&r->by_id, id);
}

static int order_by_id(const void *a, const void *b)
{
    const struct silt_sandbox *const *left = a, *const *right = b;
    return strcmp((*left)->row.id, (*right)->row.id);
}

struct silt_sandbox **silt_registry_sorted(struct silt_registry *r, struct silt_arena *a,
                                           size_t *ret_count)
{
    struct silt_sandbox **all =
        silt_arena_alloc(a, (r->by_id.used + 1) * sizeof(struct silt_sandbox *));
    size_t at = 0, count = 0;
    if (all == NULL)
        return NULL;
    for (struct silt_sandbox *s = silt_map_next(&r->by_id, &at); s != NULL;
         s = silt_map_next(&r->by_id, &at))
        all[count++] = s;
    qsort(all, count, sizeof(struct silt_sandbox *), order_by_id);
    *ret_count = count;
    return all;
}

/* Start of siltd: rows first, then the descriptors silt-super kept, then leftovers. */

static void load_sandbox(void *context, struct silt_sandbox_row *row)
{
    struct silt_registry *r = context;
    if (row->slot >= r->settings.slots || r->by_slot[row->slot] != NULL) {
        silt_log(SILT_LOG_ERROR, "store.skip", "slot=%u reason=out_of_range", row->slot);
        silt_sandbox_row_fini(row);
        return;
    }
    struct silt_sandbox *s = silt_sandbox_new(r, row->slot);
    s->row = *row;
    s->known = s->row.id[0] != 0 && (s->row.incarnation[0] != 0 || s->row.started_ms > 0);
    own_slot(r, s);
    if (s->row.id[0] != 0)
        index_by_id(r, s);
}

static int load_facets(struct silt_registry *r, struct silt_error *e)
{
    for (size_t i = r->facets->count; i-- > 0;)
        if (r->facets->of[i]->load != NULL && r->facets->of[i]->load(r, e) < 0)
            return -1;
    return 0;
}

static int read_boot_id(char *out, size_t size, struct silt_error *e)
{
    silt_auto_free char *text = NULL;
    size_t len;
    if (silt_fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, &text, &len, e) < 0)
        return -1;
    (void)snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
    return 0;
}

static void on_upkeep(struct silt_timer *t);

/* Above every number that an earlier siltd used: 2^20 numbers per millisecond. */
static int begin_numbers(struct silt_registry *r, struct silt_error *e)
{
    int64_t start_ms;
    if (silt_store_start_time(r->store, silt_clock_wall_ms(), &start_ms, e) < 0)
        return -1;
    r->epoch = (uint64_t)start_ms << 20;
    r->next_number = r->epoch;
    r->next_cell = (uint64_t)start_ms << 10;
    return 0;
}

int silt_registry_open(struct silt_registry *r, struct silt_error *e)
{
    char boot_id[64];
    struct silt_error full;
    silt_map_init(&r->by_id);
    silt_list_init(&r->images);
    silt_map_init(&r->images_by_digest);
    silt_map_init(&r->image_names);
    silt_list_init(&r->steps);
    silt_map_init(&r->steps_by_key);
    silt_list_init(&r->builds);
    silt_list_init(&r->pulls);
    silt_super_notes_init(&r->notes);
    if (r->settings.insecure == NULL)
        r->settings.insecure = "";
    if (r->settings.image_map == NULL)
        r->settings.image_map = "";
    silt_list_init(&r->imports);
    silt_list_init(&r->forgets);
    silt_list_init(&r->seals);
    silt_list_init(&r->net_asks);
    r->by_slot = calloc(r->settings.slots, sizeof(struct silt_sandbox *));
    if (r->by_slot == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for %u slots", r->settings.slots);
    r->recovery = silt_recovery_new(r);
    silt_ready_pool_init(r);
    silt_facets_call_back(r, open, r);
    r->upkeep = (struct silt_timer){.on_time = on_upkeep};
    r->recovering = true;
    const struct silt_priv_limits *limits = silt_type_find(silt_slice_of(r->settings.type));
    if (limits == NULL)
        return silt_fail(e, SILT_INVALID, "setting type: unknown instance type '%s'",
                         r->settings.type);
    r->default_limits = *limits;
    if (read_boot_id(boot_id, sizeof(boot_id), e) < 0
        || silt_store_rebooted(r->store, boot_id, &r->rebooted, e) < 0 || begin_numbers(r, e) < 0
        || silt_journal_open(&r->journal, r, e) < 0
        || silt_image_check_map(silt_slice_of(r->settings.image_map), e) < 0
        || silt_images_load(r, e) < 0 || silt_store_each_sandbox(r->store, load_sandbox, r, e) < 0
        || load_facets(r, e) < 0)
        return -1;
    /* On a full disk we begin without. Not before the first write, which shows where the WAL ends.
     */
    (void)silt_store_reserve(r->store, &full);
    return silt_recovery_begin(r, e);
}

void silt_registry_adopt(struct silt_registry *r, uint32_t slot, int channel, int pidfd)
{
    struct silt_sandbox *s = slot < r->settings.slots ? r->by_slot[slot] : NULL;
    bool known = s != NULL, runs = known && s->row.running;
    if (slot >= r->settings.slots || (known && s->channel.watch.fd >= 0)) {
        (void)close(channel);
        (void)close(pidfd);
        return;
    }
    if (!known) {
        s = silt_sandbox_new(r, slot);
        own_slot(r, s);
    }
    silt_sandbox_adopt(s, channel, pidfd);
    /* Never reported to a client, or being destroyed when siltd died. */
    if (!known || s->row.started_ms == 0)
        silt_sandbox_destroy(s, NULL);
    else if (!runs) /* its end was saved but not carried out */
        silt_sandbox_stop(s, s->row.death.cause[0] != 0 ? s->row.death.cause : "daemon_restart",
                          s->row.death.message);
}

static void ended_with_daemon(struct silt_sandbox *s)
{
    bool rebooted = s->registry->rebooted;
    struct silt_death d = {.at_ms = silt_clock_wall_ms(), .exit_code = -1};
    (void)snprintf(d.cause, sizeof(d.cause), "%s", rebooted ? "host_reboot" : "daemon_restart");
    (void)snprintf(d.message, sizeof(d.message), "%s",
                   rebooted ? "the machine was rebooted" : "the daemon was restarted");
    s->row.running = false;
    silt_sandbox_died(s, &d);
}

static void settle(struct silt_registry *r, struct silt_sandbox *s)
{
    if (s->channel.watch.fd >= 0 || s->state == SILT_SANDBOX_DESTROYING)
        return;
    s->row.paused_ms = 0;
    /* Ready, never reported to a client, or to be removed with its last process. */
    if (s->row.id[0] == 0 || s->row.started_ms == 0 || s->row.remove_after_stop) {
        silt_sandbox_destroy(s, NULL);
        return;
    }
    if (s->row.running)
        ended_with_daemon(s);
    silt_facets_call_back(r, settle, s);
}

void silt_registry_adopted_all(struct silt_registry *r)
{
    for (uint32_t i = 0; i < r->settings.slots; i++)
        if (r->by_slot[i] != NULL)
            settle(r, r->by_slot[i]);
    r->recovering = false;
    silt_facets_call(r, recovered, r);
    silt_images_sweep(r);
    for (uint32_t i = 0; i < r->settings.slots; i++)
        if (r->by_slot[i] != NULL)
            silt_sandbox_settle(r->by_slot[i]);
    silt_ready_pool_refill_soon(r);
    silt_loop_after(r->loop, &r->upkeep, UPKEEP_MS);
}

/* Every few seconds: checkpoints the WAL; removes stale sandboxes and leftovers. */

/* Runs on a thread; the worker ends before the store does. */
static void run_checkpoint(struct silt_job *j)
{
    struct silt_registry *r = silt_outer(j, struct silt_registry, checkpoint);
    struct silt_error e;
    if (silt_store_checkpoint(r->store, &e) < 0)
        silt_log(SILT_LOG_WARN, "store.checkpoint", "error=%s", e.text);
}

static void on_checkpointed(struct silt_job *j)
{
    silt_outer(j, struct silt_registry, checkpoint)->checkpointing = false;
}

static void start_checkpoint(struct silt_registry *r)
{
    if (r->checkpointing)
        return; /* the disk is slow: one at a time */
    r->checkpoint = (struct silt_job){.run = run_checkpoint, .done = on_checkpointed};
    r->checkpointing = true;
    silt_worker_submit(r->worker, &r->checkpoint);
}

/* Retries failed destroys of sandboxes without a name: no client would. */
static void remove_nameless(struct silt_registry *r)
{
    for (uint32_t i = 0; i < r->settings.slots; i++) {
        struct silt_sandbox *s = r->by_slot[i];
        if (s != NULL && s->row.id[0] == 0 && s->state == SILT_SANDBOX_STOPPED)
            silt_sandbox_destroy(s, NULL);
    }
}

static void remove_expired(struct silt_registry *r)
{
    int64_t now_ms = silt_clock_wall_ms();
    for (uint32_t i = 0; i < r->settings.slots; i++) {
        struct silt_sandbox *s = r->by_slot[i];
        if (s == NULL || s->row.expires_ms == 0 || s->row.expires_ms > now_ms
            || s->state == SILT_SANDBOX_DESTROYING)
            continue;
        silt_log(SILT_LOG_INFO, "sandbox.expire", "sandbox=%s", s->row.id);
        silt_sandbox_destroy(s, NULL);
    }
}

/* Writes the rows that a full disk has refused. */
static void save_again(struct silt_registry *r)
{
    for (uint32_t i = 0; i < r->settings.slots; i++) {
        struct silt_sandbox *s = r->by_slot[i];
        if (s == NULL || !s->unsaved || s->state == SILT_SANDBOX_DESTROYING)
            continue;
        s->unsaved = false;
        silt_sandbox_save(s);
        silt_facets_call(r, save, s);
    }
}

static void on_upkeep(struct silt_timer *t)
{
    struct silt_registry *r = silt_outer(t, struct silt_registry, upkeep);
    struct silt_error e;
    if (!r->checkpointing && silt_store_reserve(r->store, &e) == 0)
        save_again(r);
    start_checkpoint(r);
    silt_ready_pool_remove_stale(r);
    remove_nameless(r);
    remove_expired(r);
    silt_disk_full_look(r);
    silt_facets_call(r, upkeep, r);
    silt_ready_pool_refill_soon(r);
    silt_loop_after(r->loop, &r->upkeep, UPKEEP_MS);
}

void silt_registry_close(struct silt_registry *r)
{
    silt_loop_cancel(r->loop, &r->ready.refill);
    silt_loop_cancel(r->loop, &r->upkeep);
    silt_facets_call(r, close, r);
    for (uint32_t i = 0; i < r->settings.slots; i++) {
        if (r->by_slot[i] == NULL)
            continue;
        if (r->by_slot[i]->row.id[0] != 0)
            silt_sandbox_save(r->by_slot[i]);
        silt_sandbox_forget(r->by_slot[i]);
    }
    silt_super_notes_forget(r);
    silt_journal_close(&r->journal);
    silt_facets_call(r, free, r);
    silt_images_forget(r);
    silt_recovery_free(r->recovery);
    free(r->by_slot);
    silt_map_fini(&r->by_id);
}
