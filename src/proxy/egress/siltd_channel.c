/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/siltd_channel.h"
#include "base/fd.h"
#include "base/log.h"
#include "proxy/egress/allow_conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { BATCH = 64 };

/* What we say */

static void hang_up(struct silt_egress *g)
{
    if (g->channel.fd < 0)
        return;
    silt_loop_forget(g->loop, &g->channel);
    silt_close_fd(&g->channel.fd);
    g->waiting = 0;
}

/* false: there is no room just now. A channel that is broken swallows everything. */
static bool send_note(struct silt_egress *g, struct silt_egress_note *n)
{
    struct silt_parcel p = {.data = n, .len = sizeof(*n)};
    struct silt_error e;
    return g->channel.fd < 0 || silt_fd_send(g->channel.fd, &p, &e) == 0 || e.sys != EAGAIN;
}

/* Nothing is asked of us while answers wait. */
static void watch(struct silt_egress *g)
{
    if (g->channel.fd >= 0)
        silt_loop_watch(g->loop, &g->channel, g->waiting > 0 ? EPOLLOUT : EPOLLIN);
}

static void flush(struct silt_egress *g)
{
    while (g->waiting > 0 && send_note(g, &g->queue[g->first])) {
        g->first = (g->first + 1) % SILT_EGRESS_QUEUE;
        g->waiting--;
    }
}

static bool say(struct silt_egress *g, struct silt_egress_note *n, size_t most)
{
    if (g->channel.fd < 0)
        return false;
    if (g->waiting == 0 && send_note(g, n))
        return true;
    if (g->waiting >= most)
        return false;
    g->queue[(g->first + g->waiting++) % SILT_EGRESS_QUEUE] = *n;
    watch(g);
    return true;
}

static bool on_refusal(void *context, uint32_t link, const struct silt_egress_refusal *r)
{
    struct silt_egress_note n = {.type = SILT_EGRESS_REFUSED, .link = link, .body.refusal = *r};
    return say(context, &n, SILT_EGRESS_QUEUE - SILT_EGRESS_SPARE);
}

/* Requests are read only while nothing waits: there is room for each answer. */
static void answer(struct silt_egress *g, const struct silt_egress_request *q,
                   struct silt_egress_note *n)
{
    n->link = q->link;
    n->generation = q->generation;
    (void)say(g, n, SILT_EGRESS_QUEUE);
}

/* What we are asked */

static int read_policy(const struct silt_egress_set *set, int fd, struct silt_policy **ret,
                       struct silt_error *e)
{
    size_t size = set->rules * sizeof(struct silt_egress_rule);
    struct stat st;
    if (set->rules > SILT_EGRESS_RULES_MAX)
        return silt_fail(e, SILT_INVALID, "%u rules, at most %d", set->rules,
                         SILT_EGRESS_RULES_MAX);
    if (fstat(fd, &st) < 0 || st.st_size < 0 || (size_t)st.st_size != size)
        return silt_fail(e, SILT_INVALID, "a policy of another size than %zu", size);
    silt_auto_free struct silt_egress_rule *rules = malloc(size + 1);
    if (rules == NULL || pread(fd, rules, size, 0) != (ssize_t)size)
        return silt_fail(e, SILT_INVALID, "a policy that cannot be read");
    return silt_policy_new(rules, set->rules, ret, e);
}

static int set(struct silt_egress *g, const struct silt_egress_request *q,
               const struct silt_parcel *p, struct silt_error *e)
{
    struct silt_policy *policy;
    if (p->nfds != 1)
        return silt_fail(e, SILT_INVALID, "%d descriptors", p->nfds);
    if (q->link < SILT_PLAN_LINK_FIRST || q->link >= g->links->plan.links)
        return silt_fail(e, SILT_INVALID, "there is no link %u", q->link);
    if (read_policy(&q->set, p->fds[0], &policy, e) < 0)
        return -1;
    struct silt_egress_link *link = silt_link_table_at(g->links, q->link);
    if (link == NULL) {
        silt_policy_free(policy);
        return silt_fail(e, SILT_LIMIT, "more than %d links", SILT_LINK_TABLE_MAX);
    }
    silt_policy_free(link->policy);
    link->policy = policy;
    link->limit = q->set.connections;
    link->named = true;
    silt_dns_pins_prune(&link->pins, policy);
    silt_allow_conns_reconsider(link);
    return 0;
}

static void reject(struct silt_egress *g, const struct silt_egress_request *q,
                   const struct silt_error *e)
{
    struct silt_egress_note n = {.type = SILT_EGRESS_REJECTED};
    (void)snprintf(n.body.text, sizeof(n.body.text), "%.127s", e->text);
    silt_log(SILT_LOG_WARN, "egress.rejected", "link=%u error=\"%s\"", q->link, e->text);
    answer(g, q, &n);
}

static void on_set(struct silt_egress *g, const struct silt_egress_request *q,
                   const struct silt_parcel *p)
{
    struct silt_egress_note n = {.type = SILT_EGRESS_APPLIED};
    struct silt_error e;
    if (set(g, q, p, &e) < 0)
        reject(g, q, &e);
    else
        answer(g, q, &n);
}

static void on_count(struct silt_egress *g, const struct silt_egress_request *q)
{
    const struct silt_egress_link *link = silt_link_table_find(g->links, q->link);
    struct silt_egress_note n = {.type = SILT_EGRESS_COUNTS, .body.counts.run = g->links->run};
    if (link != NULL)
        n.body.counts = link->counts;
    answer(g, q, &n);
}

static void forget(struct silt_egress *g, struct silt_egress_link *link)
{
    silt_allow_conns_cut(link);
    silt_intercept_drop(link);
    silt_link_table_drop(g->links, link);
}

static void lose_policy(struct silt_egress_link *link)
{
    silt_policy_free(link->policy);
    link->policy = NULL;
    silt_dns_pins_fini(&link->pins);
}

static void on_leave(struct silt_egress_link *link, bool cut)
{
    if (cut)
        silt_allow_conns_cut(link);
    else
        silt_allow_conns_free(link);
    lose_policy(link);
}

/* Those that have a policy, or are captive, and were not named by this siltd. */
static void on_sync(struct silt_egress *g)
{
    struct silt_egress_link *link;
    for (size_t at = 0; (link = silt_map_next(&g->links->map, &at)) != NULL;) {
        if (link->policy != NULL && !link->named)
            on_leave(link, true);
        if (!link->named)
            silt_intercept_drop(link);
    }
}

static void on_capture(struct silt_egress *g, const struct silt_egress_request *q,
                       struct silt_parcel *p)
{
    struct silt_egress_note n = {.type = SILT_EGRESS_APPLIED};
    struct silt_error e = {0};
    if (silt_intercept_set(g->captives, q, p, &e) < 0 && e.code != SILT_NOT_FOUND) {
        reject(g, q, &e);
        return;
    }
    if (e.code == SILT_NOT_FOUND)
        n.type = SILT_EGRESS_LISTENLESS;
    answer(g, q, &n);
}

static void on_authority(struct silt_egress *g, const struct silt_egress_request *q,
                         const struct silt_parcel *p)
{
    struct silt_egress_note n = {.type = SILT_EGRESS_IS_AUTHORITY};
    struct silt_egress_authority given;
    struct silt_intercept_ca *a;
    struct silt_error e;
    bool good =
        p->nfds == 0 || pread(p->fds[0], &given, sizeof(given), 0) == (ssize_t)sizeof(given);
    if (!good)
        (void)silt_fail(&e, SILT_INVALID, "an authority that cannot be read");
    if (!good
        || silt_intercept_cas_at(g->captives->authorities, q->authority,
                                 p->nfds > 0 ? &given : NULL, &a, &e)
               < 0) {
        reject(g, q, &e);
        return;
    }
    n.body.authority = *silt_intercept_ca_blob(a);
    answer(g, q, &n);
}

static void on_request(struct silt_egress *g, const struct silt_egress_request *q,
                       struct silt_parcel *p)
{
    struct silt_egress_link *link = silt_link_table_find(g->links, q->link);
    switch ((enum silt_egress_ask)q->type) {
    case SILT_EGRESS_SET:
        on_set(g, q, p);
        return;
    case SILT_EGRESS_DROP:
        if (link != NULL)
            forget(g, link);
        return;
    case SILT_EGRESS_LEAVE:
    case SILT_EGRESS_CUT:
        if (link != NULL)
            on_leave(link, q->type == SILT_EGRESS_CUT);
        return;
    case SILT_EGRESS_COUNT:
        on_count(g, q);
        return;
    case SILT_EGRESS_SYNC:
        on_sync(g);
        return;
    case SILT_EGRESS_CAPTURE:
        on_capture(g, q, p);
        return;
    case SILT_EGRESS_AUTHORITY:
        on_authority(g, q, p);
        return;
    case SILT_EGRESS_UNTRUST:
        silt_intercept_cas_drop(g->captives->authorities, q->authority);
        return;
    case SILT_EGRESS_ASK_MAX:
        break;
    }
    silt_log(SILT_LOG_WARN, "egress.unknown", "type=%u", q->type);
}

static void on_channel(struct silt_watch *w, uint32_t events)
{
    struct silt_egress *g = silt_outer(w, struct silt_egress, channel);
    (void)events;
    flush(g);
    for (int i = 0; i < BATCH && g->waiting == 0; i++) {
        struct silt_egress_request q;
        struct silt_parcel p = {.data = &q, .len = sizeof(q)};
        struct silt_error e;
        int got = silt_fd_recv(w->fd, &p, &e);
        if (got < 0 && e.sys == EAGAIN)
            break;
        if (got <= 0 || p.len != sizeof(q)) {
            silt_parcel_close(&p);
            hang_up(g); /* silt-super sends a new one when there is a new siltd */
            return;
        }
        on_request(g, &q, &p);
        silt_parcel_close(&p);
    }
    watch(g);
}

void silt_egress_init(struct silt_egress *g, struct silt_loop *loop, struct silt_link_table *links,
                      struct silt_intercepts *captives)
{
    *g = (struct silt_egress){
        .loop = loop, .links = links, .captives = captives, .channel = {.fd = -1}};
    links->tell = on_refusal;
    links->context = g;
}

void silt_egress_replace(struct silt_egress *g, int channel)
{
    struct silt_egress_link *link;
    struct silt_error ignored;
    hang_up(g);
    (void)silt_fd_nonblock(channel, &ignored);
    for (size_t at = 0; (link = silt_map_next(&g->links->map, &at)) != NULL;)
        link->named = false;
    g->channel = (struct silt_watch){.fd = channel, .on_ready = on_channel};
    watch(g);
}
