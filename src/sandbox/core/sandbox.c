/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/sandbox.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "json/json.h"
#include "sandbox/core/disk_full.h"
#include "sandbox/core/facet.h"
#include "sandbox/core/image.h"
#include "sandbox/core/network_choice.h"
#include "sandbox/core/ready_pool.h"
#include "sandbox/core/recovery.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HELLO_DEADLINE_MS = 5000,  /* for an agent already running */
    BIRTH_DEADLINE_MS = 30000, /* for a new one, perhaps started with hundreds of others */
    HANDLES_AT_BIRTH = 4,
    USAGE_MS = 2000,     /* so long measured usage may be shown in lists */
    HANDLES_AT_ONCE = 8, /* fits one message on cgroup v1 and v2 */
};

/* PIDFD_GET_INFO, Linux 6.13; exit codes since 6.15. Debian 12's headers have neither. */
struct pidfd_info {
    uint64_t mask, cgroupid;
    uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    int32_t exit_code;
};
#define PIDFD_GET_INFO_ _IOWR(0xFF, 11, struct pidfd_info)
#define PIDFD_INFO_EXIT_ (1UL << 3)

static const enum silt_sandbox_state state_of[SILT_SANDBOX_PHASE_MAX] = {
    [SILT_SANDBOX_IS_STOPPED] = SILT_SANDBOX_STOPPED,
    [SILT_SANDBOX_IS_MAKING] = SILT_SANDBOX_STARTING,
    [SILT_SANDBOX_IS_CREATING] = SILT_SANDBOX_STARTING,
    [SILT_SANDBOX_IS_CLAIMED] = SILT_SANDBOX_STARTING,
    [SILT_SANDBOX_IS_ADOPTED] = SILT_SANDBOX_STARTING,
    [SILT_SANDBOX_IS_GREETED] = SILT_SANDBOX_STARTING,
    [SILT_SANDBOX_IS_RUNNING] = SILT_SANDBOX_RUNNING,
    [SILT_SANDBOX_IS_PAUSING] = SILT_SANDBOX_PAUSED,
    [SILT_SANDBOX_IS_PAUSED] = SILT_SANDBOX_PAUSED,
    [SILT_SANDBOX_IS_RESUMING] = SILT_SANDBOX_PAUSED,
    [SILT_SANDBOX_IS_STOPPING] = SILT_SANDBOX_STOPPING,
    [SILT_SANDBOX_IS_EMPTYING] = SILT_SANDBOX_DESTROYING,
    [SILT_SANDBOX_IS_EMPTIED] = SILT_SANDBOX_DESTROYING,
    [SILT_SANDBOX_IS_GONE] = SILT_SANDBOX_DESTROYING,
};

/* The only place that assigns the phase and the state. */
void silt_sandbox_enter(struct silt_sandbox *s, enum silt_sandbox_phase next)
{
    if (s->state != state_of[next])
        s->usage_ms = 0;
    s->phase = next;
    s->state = state_of[next];
    s->row.running = silt_sandbox_is_up(s) || s->state == SILT_SANDBOX_STARTING;
}

static const char *name_of(const struct silt_sandbox *s)
{
    return s->row.id[0] != 0 ? s->row.id : "(ready)";
}

static void on_hello_deadline(struct silt_timer *t);

static void free_sandbox(struct silt_grave *g)
{
    struct silt_sandbox *s = silt_outer(g, struct silt_sandbox, grave);
    silt_facets_call(s->registry, fini, s);
    silt_buf_fini(&s->exported);
    silt_buf_fini(&s->former_env);
    silt_sandbox_row_fini(&s->row);
    free(s);
}

struct silt_sandbox *silt_sandbox_new(struct silt_registry *r, uint32_t slot)
{
    struct silt_sandbox *s = calloc(1, sizeof(*s));
    if (s == NULL)
        abort();
    s->registry = r;
    s->row.slot = slot;
    s->row.death.exit_code = -1;
    s->grave.free = free_sandbox;
    silt_list_init(&s->ready_link);
    silt_list_init(&s->sessions);
    silt_buf_init(&s->exported, SILT_EXPORTED_MAX);
    silt_buf_init(&s->former_env, SILT_EXPORTED_MAX);
    silt_list_init(&s->sessions_unsaved);
    silt_list_init(&s->execs);
    silt_list_init(&s->processes);
    silt_list_init(&s->contexts);
    silt_list_init(&s->entrances);
    silt_list_init(&s->file_watches);
    silt_list_init(&s->sweeps);
    silt_list_init(&s->waiters);
    silt_list_init(&s->resters);
    silt_list_init(&s->halters);
    silt_list_init(&s->destroyers);
    silt_list_init(&s->channel.unsent);
    s->channel.watch.fd = -1;
    s->channel.pidfd.fd = -1;
    s->idle.on_time = silt_sandbox_on_idle;
    s->hello.on_time = on_hello_deadline;
    silt_facets_call(r, init, s);
    return s;
}

void silt_sandbox_forget(struct silt_sandbox *s)
{
    silt_loop_cancel(s->registry->loop, &s->idle);
    silt_loop_cancel(s->registry->loop, &s->hello);
    silt_channel_close(s);
    silt_facets_call(s->registry, forget, s);
    free_sandbox(&s->grave);
}

int silt_sandbox_store(struct silt_sandbox *s, struct silt_error *e)
{
    struct silt_store *store = s->registry->store;
    int done = s->network.unsaved ? silt_store_put_policy(store, &s->row, e)
                                  : silt_store_put_sandbox(store, &s->row, e);
    if (done == 0) {
        s->network.unsaved = false;
        return 0;
    }
    s->unsaved = true;
    silt_log(SILT_LOG_ERROR, "store.put", "sandbox=%s error=%s", name_of(s), e->text);
    return -1;
}

void silt_sandbox_save(struct silt_sandbox *s)
{
    struct silt_error e;
    (void)silt_sandbox_store(s, &e);
}

/* ---- the journal ---- */

static void note_start(struct silt_sandbox *s)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_EVENT_DETAILS_MAX);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "incarnation", s->row.incarnation);
    silt_json_close(&b, '}');
    if (!s->known)
        silt_journal_add(s->registry, s->row.id, SILT_EVENT_CREATED, (silt_slice){NULL, 0});
    s->known = true;
    silt_journal_add(s->registry, s->row.id, SILT_EVENT_STARTED, silt_buf_slice(&b));
}

static bool is_wanted(const struct silt_death *d)
{
    return strcmp(d->cause, "stopped") == 0 || strcmp(d->cause, "idle") == 0
           || strcmp(d->cause, "rolledBack") == 0;
}

static void note_end(struct silt_sandbox *s)
{
    const struct silt_death *d = &s->row.death;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_EVENT_DETAILS_MAX);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "cause", d->cause);
    silt_json_add_text(&b, "message", d->message);
    if (d->exit_code >= 0)
        silt_json_add_i64(&b, "exitCode", d->exit_code);
    if (d->signal > 0)
        silt_json_add_i64(&b, "signal", d->signal);
    if (d->limit_bytes > 0) {
        silt_json_add_u64(&b, "limitBytes", d->limit_bytes);
        silt_json_add_u64(&b, "peakBytes", d->peak_bytes);
    }
    silt_json_close(&b, '}');
    if (s->row.id[0] != 0 && s->known)
        silt_journal_add(s->registry, s->row.id,
                         is_wanted(d) ? SILT_EVENT_STOPPED : SILT_EVENT_DIED, silt_buf_slice(&b));
}

void silt_sandbox_died(struct silt_sandbox *s, const struct silt_death *d)
{
    s->row.death = *d;
    s->registry->counts.deaths++;
    silt_sandbox_save(s);
    if (s->state != SILT_SANDBOX_STOPPING) /* otherwise once they have ended */
        note_end(s);
    silt_log(SILT_LOG_INFO, "sandbox.death", "sandbox=%s cause=%s signal=%d", name_of(s), d->cause,
             d->signal);
}

void silt_sandbox_tell_super(struct silt_sandbox *s, struct silt_super_note note, const int *fds,
                             int nfds)
{
    note.key = s->row.slot;
    (void)silt_registry_tell_super(s->registry, &note, fds, nfds);
}

/* silt-super keeps a copy of both descriptors, so that a new siltd finds the sandbox again. */
static void be_kept(struct silt_sandbox *s)
{
    const int fds[] = {s->channel.watch.fd, s->channel.pidfd.fd};
    silt_sandbox_tell_super(s, (struct silt_super_note){.type = SILT_SUPER_KEEP}, fds, 2);
}

static void wake_waiters(struct silt_sandbox *s, const struct silt_error *e)
{
    while (!silt_list_empty(&s->waiters)) {
        struct silt_waiter *w = silt_list_first(&s->waiters, struct silt_waiter, link);
        silt_list_remove(&w->link);
        w->on_ready(w, e == NULL ? s : NULL, e);
        if (e == NULL && s->state != SILT_SANDBOX_RUNNING)
            return; /* a waiter ended it: the others keep waiting */
    }
}

void silt_sandbox_tell_resters(struct silt_sandbox *s, const struct silt_error *e)
{
    while (!silt_list_empty(&s->resters)) {
        struct silt_waiter *w = silt_list_first(&s->resters, struct silt_waiter, link);
        silt_list_remove(&w->link);
        w->on_ready(w, e == NULL ? s : NULL, e);
    }
}

const char *silt_sandbox_state_name(const struct silt_sandbox *s)
{
    return s->state == SILT_SANDBOX_STOPPED  ? "stopped"
           : s->state == SILT_SANDBOX_PAUSED ? "paused"
                                             : "running";
}

void silt_sandbox_time(struct silt_sandbox *s, enum silt_timing_kind kind)
{
    if (s->begun_us > 0)
        return;
    s->begun_us = silt_clock_us();
    s->begun = kind;
}

void silt_sandbox_serve(struct silt_sandbox *s)
{
    if (s->begun_us > 0)
        silt_timing_end(s->registry, s->begun, s->begun_us);
    s->begun_us = 0;
    silt_sandbox_rest_later(s);
    wake_waiters(s, NULL);
}

void silt_sandbox_on_network(struct silt_sandbox *s)
{
    if (s->state == SILT_SANDBOX_RUNNING)
        silt_sandbox_serve(s);
}

static void ask_handles(struct silt_sandbox *s);

static void is_running(struct silt_sandbox *s)
{
    silt_sandbox_enter(s, SILT_SANDBOX_IS_RUNNING);
    s->resumed_ms = 0;
    s->remark[0] = 0;
    ask_handles(s);
    silt_facets_call(s->registry, on_running, s);
    if (!s->network.coming)
        silt_sandbox_on_network(s);
}

void silt_sandbox_wait(struct silt_sandbox *s, struct silt_waiter *w)
{
    silt_list_init(&w->link);
    if (s->state == SILT_SANDBOX_RUNNING && !s->network.coming) {
        w->on_ready(w, s, NULL);
        return;
    }
    silt_list_append(&s->waiters, &w->link);
    if (s->state == SILT_SANDBOX_STOPPED)
        silt_sandbox_start(s);
    else
        silt_sandbox_wake(s);
}

/* Start. */

static void became_ready(struct silt_sandbox *s)
{
    silt_sandbox_enter(s, SILT_SANDBOX_IS_RUNNING);
    ask_handles(s);
    silt_ready_pool_add(s);
    silt_sandbox_save(s);
    silt_facets_call(s->registry, on_running, s);
    silt_ready_pool_refill_soon(s->registry);
}

static void could_not_start(struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_registry *r = s->registry;
    silt_log(SILT_LOG_ERROR, "sandbox.start", "sandbox=%s error=%s", name_of(s), e->text);
    if (e->code == SILT_NO_SPACE) {
        silt_disk_full_look(r);
        silt_facets_call(r, make_room, r);
    }
    if (s->row.id[0] == 0) {
        silt_ready_pool_on_failed(r);
        silt_sandbox_destroy(s, NULL);
        return;
    }
    r->cold_starts--;
    s->begun_us = 0;
    silt_sandbox_enter(s, SILT_SANDBOX_IS_STOPPED);
    bool fresh = s->fresh;
    wake_waiters(s, e);
    if (fresh && s->state == SILT_SANDBOX_STOPPED)
        silt_sandbox_destroy(s, NULL); /* it is unused: the next use starts from scratch */
    else
        silt_sandbox_save(s);
}

static bool ends_meanwhile(struct silt_sandbox *s);

/* The first record of a named sandbox, for the request that creates or claims it. Returns the
 * number of descriptors, 0 or 1. */
static int first_record(struct silt_sandbox *s, int *ret_fd)
{
    bool wanted = s->unrecorded && s->row.id[0] != 0;
    *ret_fd = wanted ? silt_recovery_of_sandbox(s) : -1;
    s->record_stale = wanted && *ret_fd < 0;
    return *ret_fd >= 0 ? 1 : 0;
}

static void was_recorded(struct silt_sandbox *s)
{
    s->unrecorded = s->row.id[0] == 0;
    if (s->record_stale)
        silt_recovery_on_sandbox(s);
    s->record_stale = false;
}

/* Stores a new sandbox. If that fails, its callers get the error and the sandbox is destroyed: the
 * next siltd would not know it. */
static bool is_stored(struct silt_sandbox *s)
{
    struct silt_error e;
    if (silt_sandbox_store(s, &e) == 0)
        return true;
    (void)silt_because(&e, "store sandbox %s", name_of(s));
    wake_waiters(s, &e);
    if (s->state != SILT_SANDBOX_DESTROYING)
        silt_sandbox_destroy(s, NULL);
    return false;
}

static void on_created(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_sandbox *s = context;
    s->asks--;
    int pidfd = a->ok && nfds == 1 ? fds[0] : -1;
    if (a->ok)
        was_recorded(s);
    if (ends_meanwhile(s)) {
        silt_close_fd(&pidfd);
        s->registry->cold_starts -= s->row.id[0] != 0;
        return;
    }
    if (a->ok && s->row.network != SILT_NET_CAPTIVE) /* captive ones need no link */
        s->registry->without_network = a->link == 0;
    bool lacking = s->fresh && s->network.demanded && s->registry->without_network;
    if (pidfd < 0 || lacking) {
        struct silt_error e;
        silt_close_fd(&pidfd);
        if (lacking)
            (void)silt_fail(&e, SILT_UNAVAILABLE, "this machine has no network for sandboxes");
        else if (a->ok)
            (void)silt_fail(&e, SILT_PROTOCOL, "silt-priv sent no pidfd");
        else
            e = a->body.error;
        (void)silt_because(&e, "start sandbox %s", name_of(s));
        silt_channel_close(s);
        could_not_start(s, &e);
        return;
    }
    s->channel.pidfd.fd = pidfd;
    silt_channel_open(s, silt_take_fd(&s->channel.watch.fd), pidfd);
    silt_facets_call(s->registry, on_created, s, a->link);
    be_kept(s);
    silt_channel_hello(s);
    silt_loop_after(s->registry->loop, &s->hello, BIRTH_DEADLINE_MS);
    bool fresh = s->fresh;
    s->fresh = false;
    s->handles = SILT_HANDLES_SOME;
    s->handles_wanted = 0;
    s->row.started_ms = silt_clock_wall_ms();
    silt_id_random(s->row.incarnation, SILT_INCARNATION_SIZE - 1);
    if (s->row.id[0] == 0) {
        became_ready(s);
        return;
    }
    s->registry->cold_starts--;
    if (fresh && !is_stored(s))
        return;
    if (!fresh)
        silt_sandbox_save(s);
    note_start(s);
    is_running(s);
    if (s->registry->cold_starts == 0)
        silt_ready_pool_refill_soon(s->registry);
}

void silt_sandbox_ask(struct silt_sandbox *s, const struct silt_priv_request *q, const int *fds,
                      int nfds, silt_priv_answered *on_answer)
{
    assert(s->asks == 0);
    s->asks++;
    silt_priv_ask(s->registry->priv, q, fds, nfds, on_answer, s);
}

void silt_sandbox_start(struct silt_sandbox *s)
{
    struct silt_error e;
    int pair[2];
    assert(s->state == SILT_SANDBOX_STOPPED && s->channel.watch.fd < 0);
    silt_sandbox_enter(s, SILT_SANDBOX_IS_CREATING);
    if (s->row.id[0] != 0) {
        s->registry->cold_starts++;
        s->registry->counts.cold_starts++;
        silt_sandbox_time(s, SILT_TIMING_WAKE_STOPPED);
    }
    if (silt_fd_pair(SOCK_SEQPACKET, pair, &e) < 0) {
        could_not_start(s, &e);
        return;
    }
    silt_fd_refuse_fds(pair[0]);   /* we expect no descriptors from silt-init */
    s->channel.watch.fd = pair[0]; /* watched once the other end exists */
    struct silt_priv_request q = {.op = SILT_PRIV_CREATE, .slot = s->row.slot};
    struct silt_priv_create *c = &q.body.create;
    const struct silt_image *image = silt_image_of(s);
    memcpy(c->digest, image != NULL ? silt_image_files(image) : s->row.digest, sizeof(c->digest));
    c->limits = s->row.limits;
    c->handles = HANDLES_AT_BIRTH;
    c->network = silt_network_birth_mode(s);
    c->flags = (s->fresh ? SILT_CREATE_FRESH : 0U) | (s->row.ephemeral ? SILT_CREATE_EPHEMERAL : 0U)
               | (s->row.host_usr ? SILT_CREATE_HOST_USR : 0U)
               | (s->fresh && s->row.id[0] == 0 ? SILT_CREATE_READY : 0U);
    silt_id_hostname(s->row.id[0] != 0 ? silt_slice_of(s->row.id) : SILT_LIT("silt"), c->hostname);
    int fds[] = {pair[1], -1};
    silt_sandbox_ask(s, &q, fds, 1 + first_record(s, &fds[1]), on_created);
}

static void on_made(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_sandbox *s = context;
    struct silt_waiter *w = silt_take_ptr(s->maker);
    struct silt_error e;
    (void)fds;
    (void)nfds;
    if (a->ok) {
        s->fresh = false;
        was_recorded(s);
    }
    bool ends = silt_sandbox_answered(s);
    if (a->ok)
        (void)silt_fail(&e, SILT_GONE, "sandbox '%s' was destroyed", name_of(s));
    else
        e = a->body.error;
    w->on_ready(w, a->ok && !ends ? s : NULL, a->ok && !ends ? NULL : &e);
}

void silt_sandbox_make(struct silt_sandbox *s, const uint8_t *copy, struct silt_waiter *w)
{
    struct silt_priv_request q = {.op = SILT_PRIV_MAKE, .slot = s->row.slot};
    int fd;
    assert(s->state == SILT_SANDBOX_STOPPED && s->fresh && s->maker == NULL);
    silt_sandbox_enter(s, SILT_SANDBOX_IS_MAKING);
    s->maker = w;
    q.body.make.limits = s->row.limits;
    if (copy != NULL) {
        q.body.make.copy = 1;
        memcpy(q.body.make.digest, copy, sizeof(q.body.make.digest));
    }
    int nfds = first_record(s, &fd);
    silt_sandbox_ask(s, &q, &fd, nfds, on_made);
}

void silt_sandbox_be_made(struct silt_sandbox *s)
{
    silt_journal_add(s->registry, s->row.id, SILT_EVENT_CREATED, (silt_slice){NULL, 0});
    s->known = true;
    s->registry->counts.created++;
    silt_sandbox_end_making(s);
}

void silt_sandbox_end_making(struct silt_sandbox *s)
{
    if (s->phase != SILT_SANDBOX_IS_MAKING)
        return;
    silt_sandbox_enter(s, SILT_SANDBOX_IS_STOPPED);
    if (!silt_list_empty(&s->waiters))
        silt_sandbox_start(s);
}

void silt_sandbox_roll_back(struct silt_sandbox *s, const uint8_t *layer, struct silt_waiter *w)
{
    struct silt_priv_request q = {.op = SILT_PRIV_ROLLBACK, .slot = s->row.slot};
    assert(s->state == SILT_SANDBOX_STOPPED && s->maker == NULL);
    silt_sandbox_enter(s, SILT_SANDBOX_IS_MAKING);
    s->maker = w;
    q.body.make.limits = s->row.limits;
    q.body.make.copy = 1;
    memcpy(q.body.make.digest, layer, sizeof(q.body.make.digest));
    silt_sandbox_ask(s, &q, NULL, 0, on_made);
}

static void ask_claim(struct silt_sandbox *s);

static void on_claimed(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_sandbox *s = context;
    (void)fds;
    (void)nfds;
    s->asks--;
    if (ends_meanwhile(s))
        return; /* it died: its waiters wait for the next run */
    if (!a->ok && a->body.error.code == SILT_INTERRUPTED) {
        ask_claim(s);
        return;
    }
    if (a->ok) {
        was_recorded(s);
        silt_facets_call(s->registry, on_claimed, s);
        /* Not before: a new siltd must not believe it already has these limits. */
        if (is_stored(s)) {
            note_start(s);
            is_running(s);
        }
        return;
    }
    /* The ready sandbox was unusable: fall back to an ordinary start under this name. */
    silt_log(SILT_LOG_WARN, "sandbox.claim", "sandbox=%s error=%s", name_of(s), a->body.error.text);
    silt_sandbox_stop(s, "crash", "the prepared sandbox could not be taken over");
}

static void ask_claim(struct silt_sandbox *s)
{
    struct silt_priv_request q = {.op = SILT_PRIV_CLAIM, .slot = s->row.slot};
    q.body.claim.limits = s->row.limits;
    q.body.claim.keep_limits = s->keep_limits;
    q.body.claim.network = s->row.network == SILT_NET_CAPTIVE
                               ? SILT_NET_DEFAULT
                               : silt_network_birth_mode(s); /* created captive: unchanged */
    silt_id_hostname(silt_slice_of(s->row.id), q.body.claim.hostname);
    int fd;
    int nfds = first_record(s, &fd);
    silt_sandbox_ask(s, &q, &fd, nfds, on_claimed);
}

void silt_sandbox_claim(struct silt_sandbox *s)
{
    assert(s->state == SILT_SANDBOX_RUNNING && s->row.id[0] != 0);
    silt_sandbox_enter(s, SILT_SANDBOX_IS_CLAIMED);
    if (s->asks == 0)
        ask_claim(s);
    silt_ready_pool_refill_soon(s->registry);
}

/* An agent that outlived a previous siltd. */

void silt_sandbox_adopt(struct silt_sandbox *s, int channel, int pidfd)
{
    s->network.stale = true; /* the previous siltd may have died during a change */
    silt_sandbox_enter(s, SILT_SANDBOX_IS_ADOPTED);
    if (s->row.id[0] == 0)
        silt_ready_pool_expect(s);
    silt_channel_open(s, channel, pidfd);
    silt_channel_hello(s);
    silt_loop_after(s->registry->loop, &s->hello, HELLO_DEADLINE_MS);
}

void silt_sandbox_on_hello_done(struct silt_sandbox *s)
{
    silt_loop_cancel(s->registry->loop, &s->hello);
    if (s->phase == SILT_SANDBOX_IS_ADOPTED)
        silt_sandbox_enter(s, SILT_SANDBOX_IS_GREETED);
    if (!s->registry->recovering)
        silt_sandbox_settle(s);
}

/* Compares the agent's report with what silt-super kept; both must be complete. */
void silt_sandbox_settle(struct silt_sandbox *s)
{
    if (s->phase != SILT_SANDBOX_IS_GREETED)
        return; /* we started it ourselves: nothing to reconcile; or too early */
    silt_facets_call_back(s->registry, settle, s);
    if (s->row.id[0] == 0) {
        became_ready(s);
        return;
    }
    is_running(s);
    if (s->row.paused_ms > 0)
        silt_sandbox_pause_again(s);
}

static void on_hello_deadline(struct silt_timer *t)
{
    silt_sandbox_on_lost(silt_outer(t, struct silt_sandbox, hello), "the agent did not answer");
}

/* End. */

static void disconnect(struct silt_sandbox *s, const struct silt_error *e)
{
    silt_loop_cancel(s->registry->loop, &s->idle);
    silt_loop_cancel(s->registry->loop, &s->hello);
    silt_ready_pool_remove(s);
    if (s->channel.watch.fd >= 0 && s->channel.pidfd.fd >= 0)
        silt_sandbox_tell_super(s, (struct silt_super_note){.type = SILT_SUPER_DROP}, NULL, 0);
    silt_channel_close(s);
    silt_facets_call(s->registry, on_ended, s, e);
}

static void bury(struct silt_sandbox *s)
{
    struct silt_registry *r = s->registry;
    struct silt_error e;
    if (silt_store_remove_sandbox(r->store, s->row.slot, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.remove", "slot=%u error=%s", s->row.slot, e.text);
    silt_facets_call(r, on_removed, s);
    if (s->known)
        silt_journal_add(r, s->row.id, SILT_EVENT_DESTROYED, (silt_slice){NULL, 0});
    if (s->indexed)
        silt_map_remove(&r->by_id, silt_slice_of(s->row.id));
    s->indexed = false;
    silt_registry_free_slot(r, s->row.slot);
    while (!silt_list_empty(&s->destroyers)) {
        struct silt_waiter *w = silt_list_first(&s->destroyers, struct silt_waiter, link);
        silt_list_remove(&w->link);
        w->on_ready(w, NULL, NULL);
    }
    silt_image_forget_unused(r, s->row.digest);
    silt_sandbox_enter(s, SILT_SANDBOX_IS_GONE);
    if (s->requests == 0)
        silt_loop_bury(r->loop, &s->grave); /* otherwise its last request does */
}

static void begin_anew(struct silt_sandbox *s)
{
    /* Callers that used the id during the destruction get a new sandbox of that name. */
    struct silt_link waiting;
    silt_list_init(&waiting);
    silt_list_each(it, &s->waiters)
    {
        silt_list_remove(it);
        silt_list_append(&waiting, it);
    }
    struct silt_registry *r = s->registry;
    char id[SILT_ID_MAX + 1];
    memcpy(id, s->row.id, sizeof(id));
    bury(s);
    while (!silt_list_empty(&waiting)) {
        struct silt_waiter *w = silt_list_first(&waiting, struct silt_waiter, link);
        silt_list_remove(&w->link);
        silt_registry_use(r, silt_slice_of(id), w);
    }
}

/* It stays as it is. Upkeep retries if it has no name; otherwise a client must destroy it again. */
static void could_not_destroy(struct silt_sandbox *s, const struct silt_error *e)
{
    silt_sandbox_enter(s, SILT_SANDBOX_IS_STOPPED);
    s->row.started_ms = s->row.created_ms;
    if (s->row.id[0] != 0)
        silt_sandbox_save(s);
    while (!silt_list_empty(&s->destroyers)) {
        struct silt_waiter *w = silt_list_first(&s->destroyers, struct silt_waiter, link);
        silt_list_remove(&w->link);
        w->on_ready(w, NULL, e);
    }
    wake_waiters(s, e);
}

static void ask_end(struct silt_sandbox *s);

/* Nothing of it answers any more, neither inside nor at silt-proxy. */
static void is_gone(struct silt_sandbox *s)
{
    if (s->phase != SILT_SANDBOX_IS_EMPTIED || s->drops > 0 || s->seals > 0)
        return;
    s->registry->counts.destroyed += s->row.id[0] != 0;
    begin_anew(s);
    silt_ready_pool_refill_soon(s->registry);
}

void silt_sandbox_on_sealed(struct silt_sandbox *s)
{
    s->seals--;
    is_gone(s);
}

void silt_sandbox_on_dropped(struct silt_sandbox *s)
{
    s->drops--;
    is_gone(s);
}

static void on_destroyed(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_sandbox *s = context;
    (void)fds;
    (void)nfds;
    s->asks--;
    if (a->ok) {
        silt_sandbox_enter(s, SILT_SANDBOX_IS_EMPTIED);
        is_gone(s);
        return;
    }
    silt_log(SILT_LOG_ERROR, "sandbox.destroy", "sandbox=%s error=%s", name_of(s),
             a->body.error.text);
    if (a->body.error.code == SILT_INTERRUPTED)
        ask_end(s);
    else
        could_not_destroy(s, &a->body.error);
}

static void on_stopped(void *context, const struct silt_priv_answer *a, int *fds, int nfds);

/* Only with no other request in flight: silt-priv's workers do not wait for each other. */
static void ask_end(struct silt_sandbox *s)
{
    bool all = s->state == SILT_SANDBOX_DESTROYING;
    struct silt_priv_request q = {.op = all ? SILT_PRIV_DESTROY : SILT_PRIV_STOP,
                                  .slot = s->row.slot};
    if (s->asks == 0 && !(all && silt_recovery_is_busy(s->registry, s->row.slot)))
        silt_sandbox_ask(s, &q, NULL, 0, all ? on_destroyed : on_stopped);
}

void silt_sandbox_on_recorded(struct silt_sandbox *s)
{
    if (s->phase == SILT_SANDBOX_IS_EMPTYING)
        ask_end(s);
}

/* The answer to a request about a sandbox that is ending: the end was waiting for it. */
static bool ends_meanwhile(struct silt_sandbox *s)
{
    if (s->state != SILT_SANDBOX_DESTROYING && s->state != SILT_SANDBOX_STOPPING)
        return false;
    ask_end(s);
    return true;
}

bool silt_sandbox_answered(struct silt_sandbox *s)
{
    s->asks--;
    return ends_meanwhile(s);
}

/* Saved before anything is removed, so that the next siltd finishes the job if this one dies. A
 * sandbox left without its ports or records would be neither destroyed nor intact. */
int silt_sandbox_condemn(struct silt_sandbox *s, struct silt_error *e)
{
    int64_t started_ms = s->row.started_ms;
    if (s->row.id[0] == 0 || started_ms == 0 || s->state == SILT_SANDBOX_DESTROYING)
        return 0;
    s->row.started_ms = 0;
    if (silt_sandbox_store(s, e) == 0)
        return 0;
    s->row.started_ms = started_ms;
    return silt_because(e, "destroy sandbox %s", s->row.id);
}

static void halters_rest(struct silt_sandbox *s)
{
    while (!silt_list_empty(&s->halters)) {
        struct silt_link *first = s->halters.next;
        silt_list_remove(first);
        silt_list_append(&s->resters, first);
    }
}

void silt_sandbox_destroy(struct silt_sandbox *s, struct silt_waiter *w)
{
    struct silt_error e;
    if (w != NULL)
        silt_list_init(&w->link);
    if (silt_sandbox_condemn(s, &e) < 0 && w != NULL) {
        w->on_ready(w, NULL, &e);
        return;
    }
    if (w != NULL)
        silt_list_append(&s->destroyers, &w->link);
    if (s->state == SILT_SANDBOX_DESTROYING)
        return;
    silt_sandbox_enter(s, SILT_SANDBOX_IS_EMPTYING);
    silt_facets_call(s->registry, on_destroy, s);
    (void)silt_fail(&e, SILT_GONE, "sandbox '%s' was destroyed", name_of(s));
    disconnect(s, &e);
    ask_end(s);
    halters_rest(s);
    silt_sandbox_tell_resters(s, &e);
    wake_waiters(s, &e);
}

static void on_stopped(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_sandbox *s = context;
    (void)fds;
    (void)nfds;
    s->asks--;
    if (s->state == SILT_SANDBOX_DESTROYING || (!a->ok && a->body.error.code == SILT_INTERRUPTED)) {
        ask_end(s);
        return;
    }
    if (!a->ok)
        silt_log(SILT_LOG_ERROR, "sandbox.stop", "sandbox=%s error=%s", name_of(s),
                 a->body.error.text);
    silt_sandbox_enter(s, SILT_SANDBOX_IS_STOPPED);
    note_end(s);
    bool unwanted = s->row.remove_after_stop && silt_list_empty(&s->waiters);
    if (s->row.id[0] != 0)
        silt_sandbox_save(s);
    silt_sandbox_tell_resters(s, a->ok ? NULL : &a->body.error);
    if (s->state != SILT_SANDBOX_STOPPED)
        return; /* a rester has started it again */
    if (s->row.id[0] == 0 || unwanted)
        silt_sandbox_destroy(s, NULL);
    else if (!silt_list_empty(&s->waiters))
        silt_sandbox_start(s);
}

static void stop(struct silt_sandbox *s, const struct silt_death *d)
{
    struct silt_error e;
    halters_rest(s);
    (void)silt_fail(&e, SILT_GONE, "%s", d->message);
    silt_sandbox_enter(s, SILT_SANDBOX_IS_STOPPING);
    s->row.paused_ms = 0;
    silt_sandbox_died(s, d);
    ask_end(s);
    disconnect(s, &e);
}

static bool can_end(const struct silt_sandbox *s)
{
    return silt_sandbox_is_up(s) || s->state == SILT_SANDBOX_STARTING;
}

void silt_sandbox_stop(struct silt_sandbox *s, const char *cause, const char *message)
{
    struct silt_death d = {.at_ms = silt_clock_wall_ms(), .exit_code = -1};
    if (!can_end(s))
        return;
    (void)snprintf(d.cause, sizeof(d.cause), "%s", cause);
    (void)snprintf(d.message, sizeof(d.message), "%s", message);
    stop(s, &d);
}

void silt_sandbox_halt(struct silt_sandbox *s, struct silt_waiter *w)
{
    silt_sandbox_halt_as(s, w, "stopped",
                         "the sandbox was stopped on request; the next use starts it");
}

void silt_sandbox_halt_as(struct silt_sandbox *s, struct silt_waiter *w, const char *cause,
                          const char *message)
{
    silt_list_init(&w->link);
    if (s->state == SILT_SANDBOX_STOPPED) {
        w->on_ready(w, s, NULL);
        return;
    }
    s->halt_cause = cause;
    s->halt_message = message;
    silt_list_append(&s->halters, &w->link);
    const struct silt_facets *facets = s->registry->facets;
    for (size_t i = 0; i < facets->count; i++)
        if (facets->of[i]->on_halt != NULL && facets->of[i]->on_halt(s))
            return;
    silt_sandbox_on_settled(s);
}

void silt_sandbox_on_settled(struct silt_sandbox *s)
{
    halters_rest(s);
    silt_sandbox_stop(s, s->halt_cause, s->halt_message);
}

static void read_exit(struct silt_sandbox *s, struct silt_death *d)
{
    struct pidfd_info info = {.mask = PIDFD_INFO_EXIT_};
    if (s->channel.pidfd.fd < 0 || ioctl(s->channel.pidfd.fd, PIDFD_GET_INFO_, &info) < 0
        || (info.mask & PIDFD_INFO_EXIT_) == 0)
        return;
    if (info.exit_code & 0x7f)
        d->signal = info.exit_code & 0x7f;
    else
        d->exit_code = (info.exit_code >> 8) & 0xff;
}

void silt_sandbox_on_lost(struct silt_sandbox *s, const char *why)
{
    struct silt_death d = {.cause = "crash", .at_ms = silt_clock_wall_ms(), .exit_code = -1};
    if (!can_end(s))
        return;
    read_exit(s, &d);
    (void)snprintf(
        d.message, sizeof(d.message),
        "the sandbox ended unexpectedly: %s; its files are kept and the next use starts it again",
        why);
    stop(s, &d);
}

void silt_sandbox_hold(struct silt_sandbox *s)
{
    s->requests++;
    if (s->state == SILT_SANDBOX_RUNNING)
        silt_loop_cancel(s->registry->loop, &s->idle);
}

void silt_sandbox_release(struct silt_sandbox *s)
{
    assert(s->requests > 0);
    s->requests--;
    s->row.used_ms = silt_clock_wall_ms();
    if (s->requests == 0 && s->phase == SILT_SANDBOX_IS_GONE)
        silt_loop_bury(s->registry->loop, &s->grave);
    else if (s->requests == 0)
        silt_sandbox_rest_later(s);
}

/* Requests to silt-priv. */

struct stat_ask {
    struct silt_registry *registry; /* borrowed */
    uint32_t slot;
    int64_t created_ms, asked_ms;
    enum silt_sandbox_state state;
    silt_sandbox_stated *on_stat;
    void *context;
};

bool silt_sandbox_usage_is_fresh(const struct silt_sandbox *s)
{
    return s->usage_ms > 0
           && (s->state == SILT_SANDBOX_STOPPED || silt_clock_ms() - s->usage_ms < USAGE_MS);
}

static void keep_usage(const struct stat_ask *q, const struct silt_priv_stat *stat)
{
    struct silt_sandbox *s = q->registry->by_slot[q->slot];
    if (s == NULL || s->row.created_ms != q->created_ms || s->state != q->state)
        return; /* another one, or about to differ */
    s->usage = *stat;
    s->usage_ms = q->asked_ms;
}

static void on_stat(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct stat_ask *q = context;
    (void)fds;
    (void)nfds;
    if (a->ok)
        keep_usage(q, &a->body.stat);
    q->on_stat(q->context, a->ok ? &a->body.stat : NULL);
    free(q);
}

void silt_sandbox_stat(struct silt_sandbox *s, silt_sandbox_stated *on_stated, void *context)
{
    struct stat_ask *q = calloc(1, sizeof(*q));
    if (q == NULL)
        abort();
    *q = (struct stat_ask){.registry = s->registry,
                           .slot = s->row.slot,
                           .created_ms = s->row.created_ms,
                           .asked_ms = silt_clock_ms(),
                           .state = s->state,
                           .on_stat = on_stated,
                           .context = context};
    struct silt_priv_request request = {.op = SILT_PRIV_STAT, .slot = s->row.slot};
    silt_priv_ask(s->registry->priv, &request, NULL, 0, on_stat, q);
}

static void on_handles(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_sandbox *s = context;
    s->asks--;
    s->handles = !a->ok && a->body.error.code == SILT_LIMIT ? SILT_HANDLES_ALL : SILT_HANDLES_SOME;
    struct silt_frame_out f = {.type = SILT_AGENT_HANDLES, .fds = fds, .nfds = nfds};
    if (a->ok && nfds > 0)
        silt_channel_send(s, &f);
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&fds[i]);
    if (ends_meanwhile(s))
        return;
    if (s->phase == SILT_SANDBOX_IS_CLAIMED)
        ask_claim(s); /* a ready sandbox whose agent made a request just before it was taken */
    else
        silt_sandbox_pause_continue(s);
}

/* The agent asks once and waits: a request that cannot be made now is made later. */
static void ask_handles(struct silt_sandbox *s)
{
    uint32_t count = s->handles_wanted;
    if (s->handles != SILT_HANDLES_SOME || s->asks > 0 || s->state != SILT_SANDBOX_RUNNING
        || count == 0)
        return;
    s->handles = SILT_HANDLES_ASKED;
    s->handles_wanted = 0;
    struct silt_priv_request q = {.op = SILT_PRIV_HANDLES, .slot = s->row.slot};
    q.body.count = count < HANDLES_AT_ONCE ? count : HANDLES_AT_ONCE;
    silt_sandbox_ask(s, &q, NULL, 0, on_handles);
}

void silt_sandbox_on_need_handles(struct silt_sandbox *s, uint32_t count)
{
    if (s->handles != SILT_HANDLES_SOME)
        return;
    s->handles_wanted = count;
    ask_handles(s);
}
