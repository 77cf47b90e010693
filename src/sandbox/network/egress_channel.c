/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network/egress_channel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "json/json.h"
#include "sandbox/network/intercept.h"
#include "sandbox/network/allow_rule.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/facet.h"
#include "sandbox/network/network.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    NOTES_AT_ONCE = 64, /* per loop turn */
    QUEUE_MAX = 65536,  /* past this, silt-proxy is sent everything again */
    COUNT_MS = 1000,
    SYNC_MS = 200,
};

struct item {
    struct silt_link link;
    struct silt_egress_request request;
    uint32_t slot;         /* SET, CAPTURE: the sandbox; its rules are read when it is sent */
    int fds[SILT_FDS_MAX]; /* CAPTURE: sockets */
    int nfds;
};

struct wait {
    struct silt_link link;
    struct silt_egress *egress; /* borrowed */
    uint64_t generation;
    struct silt_timer late;
    struct silt_grave grave;
    silt_egress_counted *on_counted;
    void *context;
};

static silt_slice key_of(const uint32_t *link)
{
    return (silt_slice){(const char *)link, sizeof(*link)};
}

/* Sending */

static void free_item(struct item *i)
{
    while (i->nfds > 0)
        silt_close_fd(&i->fds[--i->nfds]);
    free(i);
}

static void drop_queue(struct silt_egress *x)
{
    while (!silt_list_empty(&x->queue)) {
        struct item *i = silt_list_first(&x->queue, struct item, link);
        silt_list_remove(&i->link);
        free_item(i);
    }
    x->queued = 0;
}

static int rules_in_memory(const struct silt_sandbox *s, int *ret_fd, uint32_t *ret_count,
                           struct silt_error *e)
{
    silt_auto_buf rules = {0};
    silt_auto_fd fd = memfd_create("silt-policy", MFD_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "create memfd");
    silt_buf_init(&rules, SILT_EGRESS_RULES_MAX * sizeof(struct silt_egress_rule));
    if (s->row.allow != NULL)
        silt_allow_rules_expand(silt_slice_of(s->row.allow), &rules);
    if (rules.broken)
        return silt_fail(e, SILT_LIMIT, "more than %d rules", SILT_EGRESS_RULES_MAX);
    if (rules.len > 0 && silt_fd_write_all(fd, silt_buf_slice(&rules), e) < 0)
        return -1;
    *ret_count = (uint32_t)(rules.len / sizeof(struct silt_egress_rule));
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

/* NULL: not wanted any more. */
static struct silt_sandbox *whose(const struct silt_egress *x, const struct item *i)
{
    struct silt_sandbox *s = x->registry->by_slot[i->slot];
    bool wanted = s != NULL && s->network.end.link == i->request.link
                  && s->network.generation == i->request.generation;
    return wanted ? s : NULL;
}

/* 0: sent, or obsolete; -1: later. */
static int send_set(struct silt_egress *x, struct item *i, struct silt_error *e)
{
    struct silt_sandbox *s = whose(x, i);
    struct silt_parcel out = {.data = &i->request, .len = sizeof(i->request), .nfds = 1};
    silt_auto_fd fd = -1;
    if (s == NULL)
        return 0;
    if (rules_in_memory(s, &fd, &i->request.set.rules, e) < 0) {
        silt_network_on_applied(s, i->request.generation, e);
        return 0;
    }
    out.fds[0] = fd;
    return silt_fd_send(x->watch.fd, &out, e);
}

static int send_capture(struct silt_egress *x, struct item *i, struct silt_error *e)
{
    struct silt_sandbox *s = whose(x, i);
    struct silt_parcel out = {.data = &i->request, .len = sizeof(i->request), .nfds = 1 + i->nfds};
    silt_auto_fd fd = -1;
    if (s == NULL)
        return 0;
    if (silt_intercepts_describe(x->registry->captures, s->row.allow, &i->request, &fd, e) < 0) {
        silt_network_on_applied(s, i->request.generation, e);
        return 0;
    }
    out.fds[0] = fd;
    memcpy(out.fds + 1, i->fds, sizeof(int) * (size_t)i->nfds);
    return silt_fd_send(x->watch.fd, &out, e);
}

static int send_authority(struct silt_egress *x, struct item *i, struct silt_error *e)
{
    struct silt_parcel out = {.data = &i->request, .len = sizeof(i->request)};
    silt_auto_fd fd = -1;
    if (silt_intercepts_authority(x->registry->captures, i->request.authority, &fd) == 0)
        out.fds[out.nfds++] = fd;
    return silt_fd_send(x->watch.fd, &out, e);
}

static int send_item(struct silt_egress *x, struct item *i, struct silt_error *e)
{
    struct silt_parcel out = {.data = &i->request, .len = sizeof(i->request)};
    if (i->request.type == SILT_EGRESS_SET)
        return send_set(x, i, e);
    if (i->request.type == SILT_EGRESS_CAPTURE)
        return send_capture(x, i, e);
    if (i->request.type == SILT_EGRESS_AUTHORITY)
        return send_authority(x, i, e);
    return silt_fd_send(x->watch.fd, &out, e);
}

/* EPOLLHUP reports a closed channel. */
static void pump(struct silt_egress *x)
{
    struct silt_error e;
    uint32_t events = EPOLLIN;
    if (x->watch.fd < 0)
        return;
    while (!silt_list_empty(&x->queue)) {
        struct item *i = silt_list_first(&x->queue, struct item, link);
        silt_list_remove(&i->link); /* a SET that fails may recurse here */
        if (send_item(x, i, &e) < 0) {
            silt_list_append(x->queue.next, &i->link); /* back to the front */
            events |= EPOLLOUT;
            break;
        }
        x->queued--;
        free_item(i);
    }
    if (x->watch.fd >= 0)
        silt_loop_watch(x->registry->loop, &x->watch, events);
}

static struct item *queue(struct silt_egress *x, uint32_t type, uint32_t link, uint64_t generation)
{
    struct item *i = calloc(1, sizeof(*i));
    if (i == NULL)
        abort();
    i->request = (struct silt_egress_request){.type = type, .link = link, .generation = generation};
    silt_list_init(&i->link);
    silt_list_append(&x->queue, &i->link);
    x->queued++;
    return i;
}

static void queue_set(struct silt_sandbox *s)
{
    struct item *i =
        queue(s->registry->egress, SILT_EGRESS_SET, s->network.end.link, s->network.generation);
    i->slot = s->row.slot;
}

static struct item *queue_capture(struct silt_sandbox *s)
{
    struct item *i =
        queue(s->registry->egress, SILT_EGRESS_CAPTURE, s->network.end.link, s->network.generation);
    i->slot = s->row.slot;
    return i;
}

static void queue_authority(struct silt_egress *x, uint32_t type, uint64_t number)
{
    queue(x, type, 0, number)->request.authority = number;
}

/* Sends everything about one sandbox. */
static void introduce(struct silt_sandbox *s)
{
    struct silt_egress *x = s->registry->egress;
    struct silt_egress_end *end = &s->network.end;
    if (end->fresh)
        (void)queue(x, SILT_EGRESS_DROP, end->link, 0);
    end->fresh = false;
    end->heard = false;
    end->barrier = silt_registry_number(s->registry);
    (void)queue(x, SILT_EGRESS_COUNT, end->link, end->barrier);
    if (s->row.network == SILT_NET_ALLOW && s->network.generation != 0)
        queue_set(s);
    if (s->row.network == SILT_NET_CAPTIVE && s->network.generation != 0)
        (void)queue_capture(s);
}

static void introduce_all(struct silt_egress *x)
{
    size_t at = 0;
    struct silt_sandbox *s;
    drop_queue(x);
    silt_intercepts_introduce(x->registry->captures);
    while ((s = silt_map_next(&x->by_link, &at)) != NULL)
        introduce(s);
    silt_loop_after(x->registry->loop, &x->sync, SYNC_MS);
}

static void say(struct silt_egress *x)
{
    if (x->queued > QUEUE_MAX)
        introduce_all(x);
    pump(x);
}

/* silt-proxy forgets links that we did not name: not before every running sandbox has named its
 * own. */
static void on_sync(struct silt_timer *t)
{
    struct silt_egress *x = silt_outer(t, struct silt_egress, sync);
    struct silt_registry *r = x->registry;
    bool known = !r->recovering;
    for (uint32_t i = 0; i < r->settings.slots && known; i++) {
        const struct silt_sandbox *s = r->by_slot[i];
        known = s == NULL || s->channel.watch.fd < 0 || s->network.linked;
    }
    if (!known) {
        silt_loop_after(r->loop, t, SYNC_MS);
        return;
    }
    (void)queue(x, SILT_EGRESS_SYNC, 0, 0);
    say(x);
}

/* Receiving */

static void free_wait(struct silt_grave *g)
{
    free(silt_outer(g, struct wait, grave));
}

static void finish(struct wait *w, const struct silt_egress_counts *counts)
{
    struct silt_loop *loop = w->egress->registry->loop;
    silt_list_remove(&w->link);
    silt_loop_cancel(loop, &w->late);
    silt_loop_bury(loop, &w->grave);
    w->on_counted(w->context, counts);
}

static void on_counts(struct silt_egress *x, struct silt_sandbox *s,
                      const struct silt_egress_note *note)
{
    if (s != NULL && note->generation == s->network.end.barrier)
        s->network.end.heard = true;
    silt_list_each(it, &x->waits)
    {
        struct wait *w = silt_outer(it, struct wait, link);
        if (w->generation != note->generation)
            continue;
        finish(w, &note->body.counts);
        return;
    }
}

static void on_rejected(struct silt_sandbox *s, struct silt_egress_note *note)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    struct silt_error e;
    silt_slice text = {note->body.text, strnlen(note->body.text, sizeof(note->body.text))};
    (void)silt_fail(&e, SILT_INTERNAL, "silt-proxy refused the policy: %s",
                    silt_log_quote(text, quoted));
    silt_network_on_applied(s, note->generation, &e);
}

static void on_refused(struct silt_sandbox *s, const struct silt_egress_note *note)
{
    uint32_t omitted;
    if (!s->network.end.heard)
        return;
    struct silt_denials *l = &s->network.refusals;
    struct silt_denial *r = silt_denials_note(l, &note->body.refusal, silt_clock_wall_ms());
    if (r == NULL) {
        silt_log(SILT_LOG_WARN, "egress.note", "sandbox=%s error=\"no refusal\"", s->row.id);
        return;
    }
    if (!silt_denials_is_event(l, r, &omitted))
        return;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_EVENT_DETAILS_MAX);
    silt_json_open(&b, '{');
    silt_denial_write(&b, r);
    if (omitted > 0)
        silt_json_add_u64(&b, "omitted", omitted);
    silt_json_close(&b, '}');
    silt_journal_add(s->registry, s->row.id, SILT_EVENT_DENIED, silt_buf_slice(&b));
}

static void on_note(struct silt_egress *x, struct silt_egress_note *note)
{
    struct silt_sandbox *s = silt_map_find(&x->by_link, key_of(&note->link));
    switch ((enum silt_egress_say)note->type) {
    case SILT_EGRESS_APPLIED:
        if (s != NULL)
            silt_network_on_applied(s, note->generation, NULL);
        return;
    case SILT_EGRESS_REJECTED:
        if (s != NULL)
            on_rejected(s, note);
        else if (note->link == 0)
            silt_intercepts_on_authority(x->registry->captures, note->generation, NULL);
        return;
    case SILT_EGRESS_COUNTS:
        on_counts(x, s, note);
        return;
    case SILT_EGRESS_REFUSED:
        if (s != NULL)
            on_refused(s, note);
        return;
    case SILT_EGRESS_LISTENLESS:
        if (s != NULL)
            silt_network_on_listenless(s, note->generation);
        return;
    case SILT_EGRESS_IS_AUTHORITY:
        silt_intercepts_on_authority(x->registry->captures, note->generation,
                                     &note->body.authority);
        return;
    case SILT_EGRESS_SAY_MAX:
        break;
    }
    silt_log(SILT_LOG_WARN, "egress.note", "type=%u", note->type);
}

static void hang_up(struct silt_egress *x)
{
    if (x->watch.fd < 0)
        return;
    silt_loop_forget(x->registry->loop, &x->watch);
    silt_close_fd(&x->watch.fd);
    silt_loop_cancel(x->registry->loop, &x->sync);
    drop_queue(x);
    while (!silt_list_empty(&x->waits))
        finish(silt_list_first(&x->waits, struct wait, link), NULL);
}

/* True: there may be more. */
static bool hear(struct silt_egress *x)
{
    struct silt_egress_note note;
    struct silt_parcel in = {.data = &note, .len = sizeof(note)};
    struct silt_error e;
    int got = silt_fd_recv(x->watch.fd, &in, &e);
    silt_parcel_close(&in);
    if (got < 0 && e.sys == EAGAIN)
        return false;
    if (got > 0 && in.len == sizeof(note)) {
        on_note(x, &note);
        return true;
    }
    hang_up(x); /* gone or misbehaving: silt-super will send another */
    return false;
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_egress *x = silt_outer(w, struct silt_egress, watch);
    if ((events & EPOLLIN) == 0 && (events & (EPOLLHUP | EPOLLERR)) != 0) {
        hang_up(x);
        return;
    }
    for (int i = 0; i < NOTES_AT_ONCE && x->watch.fd >= 0; i++)
        if (!hear(x))
            break;
    pump(x);
}

/* The channel */

static void open_channel(struct silt_registry *r)
{
    struct silt_egress *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    *x = (struct silt_egress){
        .registry = r, .watch = {.fd = -1, .on_ready = on_ready}, .sync = {.on_time = on_sync}};
    silt_list_init(&x->queue);
    silt_list_init(&x->waits);
    silt_map_init(&x->by_link);
    r->egress = x;
}

static void free_channel(struct silt_registry *r)
{
    struct silt_egress *x = r->egress;
    if (x == NULL)
        return;
    silt_list_each(it, &x->waits) /* those who waited are gone with siltd */
    {
        struct wait *w = silt_outer(it, struct wait, link);
        silt_loop_cancel(x->registry->loop, &w->late);
        silt_list_remove(&w->link);
        free(w);
    }
    hang_up(x);
    silt_map_fini(&x->by_link);
    free(x);
}

void silt_egress_connect(struct silt_egress *x, int fd)
{
    struct silt_error e;
    hang_up(x);
    if (silt_fd_nonblock(fd, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "egress.channel", "error=\"%s\"", e.text);
        silt_close_fd(&fd);
        return;
    }
    x->watch.fd = fd;
    introduce_all(x);
    pump(x);
}

/* Sandboxes */

void silt_egress_begin(struct silt_sandbox *s, uint32_t link, bool fresh)
{
    struct silt_egress *x = s->registry->egress;
    struct silt_egress_end *end = &s->network.end;
    silt_egress_end(s);
    if (link == 0)
        return;
    struct silt_sandbox *former = silt_map_find(&x->by_link, key_of(&link));
    if (former != NULL) /* impossible: a link belongs to one sandbox at a time */
        silt_egress_end(former);
    *end = (struct silt_egress_end){.link = link, .fresh = fresh};
    silt_map_put(&x->by_link, key_of(&end->link), s);
    if (x->watch.fd < 0)
        return;
    introduce(s);
    say(x);
}

void silt_egress_end(struct silt_sandbox *s)
{
    struct silt_egress *x = s->registry->egress;
    struct silt_egress_end *end = &s->network.end;
    if (end->link == 0)
        return;
    (void)silt_map_remove(&x->by_link, key_of(&end->link));
    if (x->watch.fd >= 0) {
        (void)queue(x, SILT_EGRESS_DROP, end->link, 0);
        say(x);
    }
    *end = (struct silt_egress_end){0};
}

void silt_egress_set(struct silt_sandbox *s)
{
    struct silt_egress *x = s->registry->egress;
    if (s->network.end.link == 0 || x->watch.fd < 0)
        return;
    queue_set(s);
    say(x);
}

void silt_egress_capture(struct silt_sandbox *s, int *fds, int nfds)
{
    struct silt_egress *x = s->registry->egress;
    if (s->network.end.link != 0 && x->watch.fd >= 0) {
        struct item *i = queue_capture(s);
        for (; i->nfds < nfds; i->nfds++)
            i->fds[i->nfds] = silt_take_fd(&fds[i->nfds]);
        say(x);
    }
    for (int i = 0; i < nfds; i++) /* no silt-proxy to receive them */
        silt_close_fd(&fds[i]);
}

void silt_egress_authority(struct silt_egress *x, uint64_t number, bool later)
{
    if (x->watch.fd < 0)
        return;
    queue_authority(x, SILT_EGRESS_AUTHORITY, number);
    if (!later)
        say(x);
}

void silt_egress_untrust(struct silt_egress *x, uint64_t number)
{
    if (x->watch.fd < 0)
        return;
    queue_authority(x, SILT_EGRESS_UNTRUST, number);
    say(x);
}

void silt_egress_leave(struct silt_sandbox *s, bool cut)
{
    struct silt_egress *x = s->registry->egress;
    if (s->network.end.link == 0 || x->watch.fd < 0)
        return;
    (void)queue(x, cut ? SILT_EGRESS_CUT : SILT_EGRESS_LEAVE, s->network.end.link, 0);
    say(x);
}

static void on_late(struct silt_timer *t)
{
    finish(silt_outer(t, struct wait, late), NULL);
}

void silt_egress_count(struct silt_sandbox *s, silt_egress_counted *on_counted, void *context)
{
    struct silt_egress *x = s->registry->egress;
    if (s->network.end.link == 0 || x->watch.fd < 0) {
        on_counted(context, NULL);
        return;
    }
    struct wait *w = calloc(1, sizeof(*w));
    if (w == NULL)
        abort();
    *w = (struct wait){.egress = x,
                       .generation = silt_registry_number(s->registry),
                       .late = {.on_time = on_late},
                       .grave = {.free = free_wait},
                       .on_counted = on_counted,
                       .context = context};
    silt_list_init(&w->link);
    silt_list_append(&x->waits, &w->link);
    silt_loop_after(x->registry->loop, &w->late, COUNT_MS);
    (void)queue(x, SILT_EGRESS_COUNT, s->network.end.link, w->generation);
    say(x);
}

const struct silt_facet silt_egress_facet = {.open = open_channel, .free = free_channel};
