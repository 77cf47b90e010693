/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network/network.h"
#include "base/log.h"
#include "sandbox/core/recovery.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/facet.h"
#include "sandbox/core/network_choice.h"

#include <stdlib.h>

enum {
    SET_MS = 5000, /* enough for silt-proxy to restart and answer */
    RETRY_MS = 5000,
};

/* A request not counted in the sandbox's `asks`: it may run beside any other, and the sandbox may
 * be gone when the answer arrives. */
struct ask {
    struct silt_link link;          /* of the registry */
    struct silt_registry *registry; /* borrowed */
    uint32_t slot;
    uint64_t turn;
    enum silt_net_mode mode;
};

static void on_late(struct silt_timer *t);
static void apply(struct silt_sandbox *s);
static void pump(struct silt_sandbox *s);
static void turn(struct silt_sandbox *s, enum silt_net_mode mode);

static void init(struct silt_sandbox *s)
{
    silt_list_init(&s->network.changes);
    silt_denials_init(&s->network.refusals);
    s->network.late.on_time = on_late;
}

static void fini(struct silt_sandbox *s)
{
    silt_loop_cancel(s->registry->loop, &s->network.late);
    silt_denials_fini(&s->network.refusals);
    free(s->network.before_allow);
    s->network.before_allow = NULL;
}

static void enter(struct silt_sandbox *s,
                  enum silt_network_step next) /* the only place that assigns it */
{
    s->network.step = next;
    s->network.turn = silt_registry_number(s->registry);
    if (next == SILT_NETWORK_SETTING)
        silt_loop_after(s->registry->loop, &s->network.late, SET_MS);
    else
        silt_loop_cancel(s->registry->loop, &s->network.late);
}

static void finish(struct silt_network_change *c, const struct silt_error *e)
{
    if (c == NULL)
        return; /* its caller has left */
    silt_list_remove(&c->link);
    c->network = NULL;
    free(c->allow); /* of a change that was refused: otherwise the row has it */
    c->allow = NULL;
    c->on_done(c, e);
}

/* The row */

static void forget_before(struct silt_network *n)
{
    free(n->before_allow);
    n->before_allow = NULL;
    n->changing = false;
}

static void take_back(struct silt_sandbox *s)
{
    struct silt_network *n = &s->network;
    free(s->row.allow);
    s->row.allow = n->before_allow;
    s->row.network = n->before;
    n->before_allow = NULL;
    n->changing = false;
}

/* Saved before it is carried out: if we die in between, the next siltd does it. */
static int write_down(struct silt_sandbox *s, struct silt_network_change *c, struct silt_error *e)
{
    struct silt_network *n = &s->network;
    /* A change without rules needs no new row: a full disk must not keep a network open. */
    if (c->mode == SILT_NET_ALLOW && silt_store_admit(s->registry->store, e) < 0)
        return -1;
    n->changing = true;
    n->before = s->row.network;
    n->before_allow = s->row.allow;
    s->row.network = c->mode;
    s->row.allow = c->allow;
    c->allow = NULL;
    n->unsaved = s->phase == SILT_SANDBOX_IS_CLAIMED; /* saved when it gets its name */
    if (n->unsaved || silt_store_put_policy(s->registry->store, &s->row, e) == 0) {
        silt_recovery_on_sandbox(s);
        return 0;
    }
    take_back(s);
    return -1;
}

/* Restores the previous policy, also in silt-proxy, which may have the new rules or be about to get
 * them. */
static void undo(struct silt_sandbox *s)
{
    struct silt_network *n = &s->network;
    bool was_told = s->row.network == SILT_NET_ALLOW;
    take_back(s);
    n->unsaved = true;
    silt_sandbox_save(s);
    silt_recovery_on_sandbox(s);
    bool captive = s->row.network == SILT_NET_CAPTIVE;
    n->generation =
        captive || s->row.network == SILT_NET_ALLOW ? silt_registry_number(s->registry) : 0;
    if (captive)
        silt_egress_capture(s, NULL, 0);
    else if (n->generation != 0)
        silt_egress_set(s);
    else if (was_told)
        silt_egress_leave(s, false);
}

/* Steps */

/* The end of a change, or of applying the row after a start or a restart of siltd. */
static void done(struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_network *n = &s->network;
    struct silt_network_change *c = n->now;
    enter(s, SILT_NETWORK_RESTING);
    if (e != NULL && !n->changing && e->code != SILT_UNAVAILABLE)
        silt_loop_after(s->registry->loop, &n->late, RETRY_MS); /* no event will trigger it */
    if (e != NULL)
        silt_log(n->failing ? SILT_LOG_DEBUG : SILT_LOG_WARN, "sandbox.network",
                 "sandbox=%s error=\"%s\"", s->row.id, e->text);
    n->failing = e != NULL && !n->changing;
    if (n->changing && e != NULL)
        undo(s);
    forget_before(n);
    n->now = NULL;
    finish(c, e);
    pump(s);
    bool under_way = n->stale || (n->step != SILT_NETWORK_RESTING && !n->changing);
    if (!n->coming || under_way)
        return;
    n->coming = false;
    silt_sandbox_on_network(s);
}

static void end_ask(struct ask *q)
{
    silt_list_remove(&q->link);
    free(q);
}

static void forget_asks(struct silt_registry *r)
{
    while (!silt_list_empty(&r->net_asks))
        end_ask(silt_list_first(&r->net_asks, struct ask, link));
}

static void put_question(struct silt_sandbox *s, enum silt_priv_op op, enum silt_net_mode mode,
                         silt_priv_answered *on_answer)
{
    struct ask *q = calloc(1, sizeof(*q));
    if (q == NULL)
        abort();
    *q = (struct ask){
        .registry = s->registry, .slot = s->row.slot, .turn = s->network.turn, .mode = mode};
    silt_list_append(&s->registry->net_asks, &q->link);
    struct silt_priv_request request = {.op = op, .slot = s->row.slot};
    if (op == SILT_PRIV_NETWORK)
        request.body.network = mode;
    silt_priv_ask(s->registry->priv, &request, NULL, 0, on_answer, q);
}

/* NULL: the answer is not wanted any more. */
static struct silt_sandbox *asker(const struct ask *q)
{
    struct silt_sandbox *s = q->registry->by_slot[q->slot];
    return s != NULL && s->network.turn == q->turn ? s : NULL;
}

static bool is_interrupted(const struct silt_priv_answer *a)
{
    return !a->ok && a->body.error.code == SILT_INTERRUPTED;
}

static void learn(struct silt_sandbox *s);

static void on_learned(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_sandbox *s = asker(context);
    (void)fds;
    (void)nfds;
    end_ask(context);
    if (s == NULL)
        return;
    if (is_interrupted(a)) {
        learn(s);
        return;
    }
    if (!a->ok && a->body.error.code != SILT_UNAVAILABLE) {
        done(s, &a->body.error);
        return;
    }
    s->network.linked = true;
    if (a->ok)
        silt_egress_begin(s, a->link, false);
    if (a->ok && s->network.in_force == SILT_NET_DEFAULT
        && a->body.netstat.mode < SILT_NET_MODE_MAX)
        s->network.in_force = (enum silt_net_mode)a->body.netstat.mode;
    if (silt_sandbox_is_up(s)) {
        apply(s);
        return;
    }
    s->network.stale = true; /* it is being claimed: apply it after that */
    done(s, NULL);
}

static void learn(struct silt_sandbox *s)
{
    enter(s, SILT_NETWORK_LEARNING);
    put_question(s, SILT_PRIV_NETSTAT, SILT_NET_DEFAULT, on_learned);
}

static void set_rules(struct silt_sandbox *s)
{
    enter(s, SILT_NETWORK_SETTING);
    s->network.generation = silt_registry_number(s->registry);
    silt_egress_set(s);
}

static void on_late(struct silt_timer *t)
{
    struct silt_network *n = silt_outer(t, struct silt_network, late);
    struct silt_error e;
    if (n->step == SILT_NETWORK_RESTING) {
        n->stale = true;
        pump(silt_outer(n, struct silt_sandbox, network));
        return;
    }
    (void)silt_fail(&e, SILT_TIMEOUT, "silt-proxy did not take the rules in time");
    done(silt_outer(n, struct silt_sandbox, network), &e);
}

void silt_network_on_applied(struct silt_sandbox *s, uint64_t generation,
                             const struct silt_error *e)
{
    struct silt_network *n = &s->network;
    if (generation != n->generation || generation == 0)
        return;
    if (e == NULL)
        n->end.heard = true;
    bool turned = n->in_force == SILT_NET_ALLOW || s->row.network == SILT_NET_CAPTIVE;
    if (n->step == SILT_NETWORK_SETTING && (e != NULL || turned))
        done(s, e);
    else if (n->step == SILT_NETWORK_SETTING
             || (n->step == SILT_NETWORK_RESTING && e == NULL && !turned && silt_sandbox_is_up(s)))
        turn(s, SILT_NET_ALLOW); /* RESTING: a silt-proxy that connected late */
}

static void on_turned(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    enum silt_net_mode mode = ((struct ask *)context)->mode;
    struct silt_sandbox *s = asker(context);
    (void)fds;
    (void)nfds;
    end_ask(context);
    if (s == NULL)
        return;
    struct silt_network *n = &s->network;
    if (is_interrupted(a)) {
        turn(s, mode);
        return;
    }
    /* On a machine without sandbox networking, mode none is already in force. */
    if (!a->ok && !(a->body.error.code == SILT_UNAVAILABLE && mode == SILT_NET_NONE)) {
        done(s, &a->body.error);
        return;
    }
    bool told = n->in_force == SILT_NET_ALLOW || n->in_force == SILT_NET_DEFAULT;
    n->in_force = mode;
    if (mode != SILT_NET_ALLOW) {
        n->generation = 0;
        if (told)
            silt_egress_leave(s, mode == SILT_NET_NONE);
    }
    done(s, NULL);
}

static void turn(struct silt_sandbox *s, enum silt_net_mode mode)
{
    enter(s, SILT_NETWORK_TURNING);
    put_question(s, SILT_PRIV_NETWORK, mode, on_turned);
}

/* Captive: silt-proxy gets the sockets that silt-priv creates inside, and where they lead. */

static void make_sockets(struct silt_sandbox *s);

static void hand_over(struct silt_sandbox *s, int *fds, int nfds)
{
    enter(s, SILT_NETWORK_SETTING);
    s->network.generation = silt_registry_number(s->registry);
    silt_egress_capture(s, fds, nfds);
}

static void on_sockets(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_sandbox *s = asker(context);
    end_ask(context);
    if (s != NULL && a->ok) {
        s->network.deaf = false;
        hand_over(s, fds, nfds);
        return;
    }
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&fds[i]);
    if (s == NULL)
        return;
    if (is_interrupted(a))
        make_sockets(s);
    else
        done(s, &a->body.error);
}

static void make_sockets(struct silt_sandbox *s)
{
    enter(s, SILT_NETWORK_TURNING);
    put_question(s, SILT_PRIV_CAPTURE, SILT_NET_CAPTIVE, on_sockets);
}

void silt_network_on_listenless(struct silt_sandbox *s, uint64_t generation)
{
    struct silt_network *n = &s->network;
    bool waits = n->step == SILT_NETWORK_SETTING || n->step == SILT_NETWORK_RESTING;
    if (s->row.network == SILT_NET_CAPTIVE && generation == n->generation && waits
        && silt_sandbox_is_up(s))
        make_sockets(s);
}

static void capture(struct silt_sandbox *s)
{
    if (!s->network.linked)
        silt_egress_begin(s, SILT_EGRESS_CAPTIVE | s->row.slot, false);
    s->network.linked = true;
    s->network.in_force = SILT_NET_CAPTIVE;
    if (s->network.deaf)
        make_sockets(s);
    else
        hand_over(s, NULL, 0);
}

/* A captive ready sandbox has no intercept before it has a name. */
static bool has_capture(const struct silt_sandbox *s)
{
    return s->row.network == SILT_NET_CAPTIVE && s->row.allow != NULL;
}

/* Applies the row. */
static void apply(struct silt_sandbox *s)
{
    if (s->row.network == SILT_NET_CAPTIVE && !has_capture(s))
        done(s, NULL);
    else if (s->row.network == SILT_NET_CAPTIVE)
        capture(s);
    else if (!s->network.linked)
        learn(s);
    else if (s->row.network == SILT_NET_DEFAULT)
        done(s, NULL);
    else if (s->row.network == SILT_NET_ALLOW && s->network.end.link != 0)
        set_rules(s);
    else
        turn(s, s->row.network);
}

/* Changes */

static struct silt_network_change *first(struct silt_network *n)
{
    return silt_list_first(&n->changes, struct silt_network_change, link);
}

static void begin(struct silt_sandbox *s, struct silt_network_change *c)
{
    struct silt_network *n = &s->network;
    struct silt_error e;
    silt_list_remove(&c->link);
    if (write_down(s, c, &e) < 0) {
        finish(c, &e);
        return;
    }
    if (silt_sandbox_is_up(s)) {
        n->now = c;
        apply(s);
        return;
    }
    n->stale = s->state == SILT_SANDBOX_STARTING;
    forget_before(n);
    finish(c, NULL);
}

static void pump(struct silt_sandbox *s)
{
    struct silt_network *n = &s->network;
    while (n->step == SILT_NETWORK_RESTING && (n->stale || first(n) != NULL)) {
        if (n->stale && silt_sandbox_is_up(s)) {
            n->stale = false;
            apply(s);
            return;
        }
        if (first(n) == NULL)
            return;
        begin(s, first(n));
    }
}

void silt_network_change(struct silt_sandbox *s, struct silt_network_change *c)
{
    struct silt_error e;
    c->network = &s->network;
    silt_list_init(&c->link);
    if ((s->row.network == SILT_NET_CAPTIVE) != (c->mode == SILT_NET_CAPTIVE)) {
        (void)silt_fail(&e, SILT_CONFLICT,
                        "a container's network is that of its sidecar, for life");
        finish(c, &e);
        return;
    }
    silt_list_append(&s->network.changes, &c->link);
    pump(s);
}

void silt_network_leave(struct silt_network_change *c)
{
    silt_list_remove(&c->link);
    if (c->network != NULL && c->network->now == c)
        c->network->now = NULL;
    free(c->allow);
    c->allow = NULL;
}

/* The core's callbacks */

static enum silt_net_mode born_in(const struct silt_sandbox *s)
{
    enum silt_net_mode mode = silt_network_birth_mode(s);
    return mode == SILT_NET_DEFAULT ? SILT_NET_PUBLIC : mode;
}

static void on_created(struct silt_sandbox *s, uint32_t link)
{
    s->network.linked = true;
    s->network.in_force = born_in(s);
    s->network.deaf = s->row.network == SILT_NET_CAPTIVE;
    silt_egress_begin(s, s->network.deaf ? SILT_EGRESS_CAPTIVE | s->row.slot : link, true);
}

static void on_claimed(struct silt_sandbox *s)
{
    if (s->row.network != SILT_NET_DEFAULT && s->row.network != SILT_NET_CAPTIVE)
        s->network.in_force = born_in(s);
}

static void on_running(struct silt_sandbox *s)
{
    if (s->row.network == SILT_NET_ALLOW || has_capture(s))
        s->network.stale = s->network.coming = true;
    pump(s);
}

static void on_ended(struct silt_sandbox *s, const struct silt_error *why)
{
    (void)why;
    struct silt_network *n = &s->network;
    struct silt_network_change *c = n->now;
    struct silt_error e;
    bool gone = s->state == SILT_SANDBOX_DESTROYING;
    (void)silt_fail(&e, SILT_GONE, "the sandbox is being destroyed");
    enter(s, SILT_NETWORK_RESTING);
    silt_egress_end(s);
    n->linked = n->stale = n->coming = n->deaf = false;
    n->in_force = SILT_NET_DEFAULT;
    n->generation = 0;
    forget_before(n);
    n->now = NULL;
    finish(c, gone ? &e : NULL); /* the next start uses the new mode */
    while (gone && (c = first(n)) != NULL)
        finish(c, &e);
    pump(s);
}

const struct silt_facet silt_network_facet = {
    .free = forget_asks,
    .init = init,
    .on_created = on_created,
    .on_claimed = on_claimed,
    .on_running = on_running, /* silt_sandbox_on_network follows if `coming` is set */
    .on_ended = on_ended,
    .fini = fini,
};
