/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network.h"
#include "base/log.h"
#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

/* A question that is not among the sandbox's `asks`: it may be put beside any other, and the
 * sandbox may be gone when the answer comes. */
struct ask {
    struct silt_registry *registry; /* borrowed */
    uint32_t slot;
    char id[SILT_ID_MAX + 1];
    enum silt_net_mode mode, before;
};

void silt_network_init(struct silt_sandbox *s)
{
    silt_list_init(&s->network.changes);
}

static void save(struct silt_sandbox *s, enum silt_net_mode mode)
{
    s->row.network = mode;
    silt_sandbox_save(s);
}

static bool is_up(const struct silt_sandbox *s)
{
    return s->state == SILT_SANDBOX_RUNNING && !s->claimed;
}

static void pump(struct silt_sandbox *s);
static void put_question(struct silt_sandbox *s, enum silt_net_mode mode,
                         enum silt_net_mode before);

static struct silt_network_change *first(struct silt_sandbox *s)
{
    struct silt_link *l = s->network.changes.next;
    return silt_list_empty(&s->network.changes)
               ? NULL
               : silt_container_of(l, struct silt_network_change, link);
}

static void finish(struct silt_network_change *c, const struct silt_error *e)
{
    silt_list_remove(&c->link);
    c->on_done(c, e);
}

/* Where there is no network at all, none is what it has. A sandbox that has ended meanwhile starts
 * with the new mode. */
static bool is_failure(const struct silt_sandbox *s, const struct silt_priv_answer *a,
                       enum silt_net_mode mode)
{
    if (a->ok || !is_up(s))
        return false;
    return a->body.error.code != SILT_UNAVAILABLE || mode != SILT_NET_NONE;
}

static void on_answer(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct ask q = *(struct ask *)context;
    struct silt_sandbox *s = q.registry->by_slot[q.slot];
    (void)fds;
    (void)nfds;
    free(context);
    if (s == NULL || strcmp(s->row.id, q.id) != 0 || !s->network.asked)
        return;
    s->network.asked = false;
    if (!a->ok && a->body.error.code == SILT_INTERRUPTED && is_up(s)) {
        put_question(s, q.mode, q.before);
        return;
    }
    struct silt_network_change *c = first(s);
    bool failed = is_failure(s, a, q.mode);
    if (failed) {
        silt_log(SILT_LOG_WARN, "sandbox.network", "sandbox=%s error=\"%s\"", s->row.id,
                 a->body.error.text);
        save(s, q.before);
    }
    if (c != NULL && c->mode == q.mode)
        finish(c, failed ? &a->body.error : NULL);
    pump(s);
}

static void put_question(struct silt_sandbox *s, enum silt_net_mode mode, enum silt_net_mode before)
{
    struct ask *q = calloc(1, sizeof(*q));
    if (q == NULL)
        abort();
    *q = (struct ask){.registry = s->registry, .slot = s->row.slot, .mode = mode, .before = before};
    memcpy(q->id, s->row.id, sizeof(q->id));
    s->network.asked = true;
    struct silt_priv_request request = {
        .op = SILT_PRIV_NETWORK, .slot = s->row.slot, .body.network = mode};
    silt_priv_ask(s->registry->priv, &request, NULL, 0, on_answer, q);
}

/* Written down before it is done: should we die in between, the next siltd does it. */
static void pump(struct silt_sandbox *s)
{
    struct silt_network_change *c;
    while (!s->network.asked && (c = first(s)) != NULL) {
        enum silt_net_mode before = s->row.network;
        save(s, c->mode);
        if (is_up(s)) {
            put_question(s, c->mode, before);
            return;
        }
        s->network.stale = s->state == SILT_SANDBOX_STARTING || s->state == SILT_SANDBOX_RUNNING;
        finish(c, NULL);
    }
}

void silt_network_change(struct silt_sandbox *s, struct silt_network_change *c)
{
    silt_list_init(&c->link);
    silt_list_append(&s->network.changes, &c->link);
    pump(s);
}

void silt_network_leave(struct silt_network_change *c)
{
    silt_list_remove(&c->link);
}

void silt_network_on_running(struct silt_sandbox *s)
{
    if (!s->network.stale || s->network.asked || s->row.network == SILT_NET_DEFAULT)
        return;
    s->network.stale = false;
    put_question(s, s->row.network, s->row.network);
}

void silt_network_end(struct silt_sandbox *s)
{
    struct silt_error e;
    struct silt_network_change *c;
    (void)silt_fail(&e, SILT_GONE, "the sandbox is being destroyed");
    s->network.asked = false;
    while ((c = first(s)) != NULL)
        finish(c, &e);
}

/* Counters */

struct counting {
    struct silt_registry *registry; /* borrowed */
    uint32_t slot;
    silt_network_counted *on_counted;
    void *context;
};

static void on_counters(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct counting c = *(struct counting *)context;
    (void)fds;
    (void)nfds;
    free(context);
    const struct silt_sandbox *s = c.registry->by_slot[c.slot];
    bool failed = !a->ok && s != NULL && is_up(s);
    c.on_counted(c.context, a->ok ? &a->body.netstat : NULL, failed ? &a->body.error : NULL);
}

void silt_network_count(struct silt_sandbox *s, silt_network_counted *on_counted, void *context)
{
    struct counting *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    *c = (struct counting){
        .registry = s->registry, .slot = s->row.slot, .on_counted = on_counted, .context = context};
    struct silt_priv_request q = {.op = SILT_PRIV_NETSTAT, .slot = s->row.slot};
    silt_priv_ask(s->registry->priv, &q, NULL, 0, on_counters, c);
}
