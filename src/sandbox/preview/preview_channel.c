/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/preview/preview_channel.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/preview/preview_dial.h"
#include "sandbox/core/facet.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
    ASKS_AT_ONCE = 64, /* per loop turn */
    DROP_MS = 2000,
    FDS_MAX = 2,
};

struct item {
    struct silt_link link;
    struct silt_preview_answer answer;
    int fds[FDS_MAX];
    int nfds;
};

struct drop {
    struct silt_link link;
    struct silt_preview *preview; /* borrowed */
    uint64_t number;
    struct silt_timer late;
    struct silt_grave grave;
    void (*on_dropped)(void *context); /* NULL: no callback */
    void *context;
};

static silt_slice key_of(const uint64_t *number)
{
    return (silt_slice){(const char *)number, sizeof(*number)};
}

/* Sending */

static void free_item(struct item *i)
{
    silt_list_remove(&i->link);
    for (int n = 0; n < i->nfds; n++)
        silt_close_fd(&i->fds[n]);
    free(i);
}

/* EPOLLHUP reports a closed channel. */
static void pump(struct silt_preview *p)
{
    struct silt_error e;
    if (p->watch.fd < 0)
        return;
    while (!silt_list_empty(&p->queue)) {
        struct item *i = silt_list_first(&p->queue, struct item, link);
        struct silt_parcel out = {.data = &i->answer, .len = sizeof(i->answer), .nfds = i->nfds};
        memcpy(out.fds, i->fds, sizeof(i->fds));
        if (silt_fd_send(p->watch.fd, &out, &e) < 0)
            break;
        free_item(i);
    }
    silt_loop_watch(p->registry->loop, &p->watch, silt_list_empty(&p->queue) ? EPOLLIN : EPOLLOUT);
}

void silt_preview_say(struct silt_preview *p, const struct silt_preview_answer *a, const int *fds,
                      int nfds)
{
    struct item *i = calloc(1, sizeof(*i));
    if (i == NULL)
        abort();
    *i = (struct item){.answer = *a, .nfds = nfds};
    for (int n = 0; n < nfds; n++)
        i->fds[n] = fds[n];
    silt_list_init(&i->link);
    if (p->watch.fd < 0) {
        free_item(i);
        return;
    }
    silt_list_append(&p->queue, &i->link);
    pump(p);
}

int silt_preview_hand_over(struct silt_exposed_port *x, struct silt_preview_visitor v,
                           struct silt_error *e)
{
    struct silt_preview *p = x->sandbox->registry->preview;
    const int fds[] = {v.connection, v.said};
    struct silt_preview_answer a = {.type = SILT_PREVIEW_HAND, .route = x->row.route};
    a.body.hand = (struct silt_preview_hand){
        .flags = v.flags, .sandbox = x->sandbox->row.slot, .bytes = v.bytes, .port = x->row.port};
    bool there = p->watch.fd >= 0;
    x->told = x->told || there;
    x->found = there;
    silt_preview_say(p, &a, fds, 2);
    return there ? 0 : silt_fail(e, SILT_UNAVAILABLE, "silt-proxy is being restarted; try again");
}

/* Drops */

static void free_drop(struct silt_grave *g)
{
    free(silt_outer(g, struct drop, grave));
}

static void finish(struct drop *d)
{
    struct silt_loop *loop = d->preview->registry->loop;
    silt_list_remove(&d->link);
    silt_loop_cancel(loop, &d->late);
    silt_loop_bury(loop, &d->grave);
    if (d->on_dropped != NULL)
        d->on_dropped(d->context);
}

static void on_late(struct silt_timer *t)
{
    struct drop *d = silt_outer(t, struct drop, late);
    silt_log(SILT_LOG_WARN, "preview.drop", "route=%llu error=\"silt-proxy did not confirm\"",
             (unsigned long long)d->number);
    finish(d);
}

static void say_drop(const struct drop *d)
{
    struct silt_preview_answer a = {.type = SILT_PREVIEW_DROP, .route = d->number};
    silt_preview_say(d->preview, &a, NULL, 0);
}

/* Without a channel the next one gets the drop: a silt-proxy that is still alive may have open
 * connections. */
void silt_preview_drop(struct silt_preview *p, uint64_t number, void (*on_dropped)(void *context),
                       void *context)
{
    struct drop *d = calloc(1, sizeof(*d));
    if (d == NULL)
        abort();
    *d = (struct drop){.preview = p,
                       .number = number,
                       .late = {.on_time = on_late},
                       .grave = {.free = free_drop},
                       .on_dropped = on_dropped,
                       .context = context};
    silt_list_init(&d->link);
    silt_list_append(&p->drops, &d->link);
    silt_loop_after(p->registry->loop, &d->late, DROP_MS);
    say_drop(d);
}

void silt_preview_leave(struct silt_preview *p, const void *context)
{
    silt_list_each(it, &p->drops)
    {
        struct drop *d = silt_outer(it, struct drop, link);
        if (d->context == context)
            d->on_dropped = NULL;
    }
}

static void on_dropped(struct silt_preview *p, uint64_t number)
{
    silt_list_each(it, &p->drops)
    {
        struct drop *d = silt_outer(it, struct drop, link);
        if (d->number != number)
            continue;
        finish(d);
        return;
    }
}

/* Receiving */

static struct silt_exposed_port *find_number(struct silt_preview *p, uint64_t number)
{
    struct silt_exposed_port *x = silt_map_find(&p->by_number, key_of(&number));
    return x != NULL && x->found ? x : NULL;
}

static void set_used(struct silt_exposed_port *x, bool used)
{
    if (x->used == used)
        return;
    x->used = used;
    if (!used) {
        silt_sandbox_release(x->sandbox);
        return;
    }
    silt_sandbox_hold(x->sandbox);
    silt_sandbox_wake(x->sandbox); /* it may be a connection from before a pause */
}

static void on_find(struct silt_preview *p, struct silt_preview_request *q)
{
    struct silt_preview_answer a = {.serial = q->serial};
    q->body.find.name[SILT_PREVIEW_NAME - 1] = 0;
    q->body.find.proof[SILT_PREVIEW_PROOF - 1] = 0;
    silt_preview_find(p, &q->body.find, &a);
    silt_preview_say(p, &a, NULL, 0);
    if (a.type == SILT_PREVIEW_ROUTE && q->body.find.dial != 0 && q->body.find.dial != q->serial)
        silt_preview_dial_begin(p, find_number(p, a.route), q->body.find.dial,
                                q->body.find.wait_ms);
}

static void on_request(struct silt_preview *p, struct silt_preview_request *q)
{
    struct silt_exposed_port *x = find_number(p, q->route);
    switch ((enum silt_preview_ask)q->type) {
    case SILT_PREVIEW_FIND:
        on_find(p, q);
        return;
    case SILT_PREVIEW_DIAL:
        silt_preview_dial_begin(p, x, q->serial, q->body.dial.wait_ms);
        return;
    case SILT_PREVIEW_LEAVE:
        silt_preview_dial_leave(p, q->serial);
        return;
    case SILT_PREVIEW_USE:
        if (x != NULL)
            set_used(x, q->body.using > 0);
        return;
    case SILT_PREVIEW_DROPPED:
        on_dropped(p, q->route);
        return;
    case SILT_PREVIEW_ASK_MAX:
        break;
    }
    silt_log(SILT_LOG_WARN, "preview.ask", "type=%u", q->type);
}

/* The next silt-proxy has to ask again. */
static void forget_entrances(struct silt_preview *p)
{
    size_t at = 0;
    struct silt_exposed_port *x;
    while ((x = silt_map_next(&p->by_number, &at)) != NULL) {
        set_used(x, false);
        x->found = false;
    }
}

static void hang_up(struct silt_preview *p)
{
    if (p->watch.fd < 0)
        return;
    silt_loop_forget(p->registry->loop, &p->watch);
    silt_close_fd(&p->watch.fd);
    while (!silt_list_empty(&p->queue))
        free_item(silt_list_first(&p->queue, struct item, link));
    silt_preview_dial_leave_all(p);
    forget_entrances(p);
}

/* True: there may be more. */
static bool hear(struct silt_preview *p)
{
    struct silt_preview_request q;
    struct silt_parcel in = {.data = &q, .len = sizeof(q)};
    struct silt_error e;
    int got = silt_fd_recv(p->watch.fd, &in, &e);
    silt_parcel_close(&in);
    if (got < 0 && e.sys == EAGAIN)
        return false;
    if (got > 0 && in.len == sizeof(q)) {
        on_request(p, &q);
        return true;
    }
    hang_up(p); /* gone or misbehaving: the next one gets a new channel */
    return false;
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_preview *p = silt_outer(w, struct silt_preview, watch);
    if ((events & EPOLLIN) == 0 && (events & (EPOLLHUP | EPOLLERR)) != 0) {
        hang_up(p);
        return;
    }
    pump(p);
    for (int i = 0; i < ASKS_AT_ONCE && p->watch.fd >= 0 && silt_list_empty(&p->queue); i++)
        if (!hear(p))
            return;
}

/* The channel */

static void open_channel(struct silt_registry *r)
{
    struct silt_preview *p = calloc(1, sizeof(*p));
    if (p == NULL || getrandom(&p->seed, sizeof(p->seed), 0) != (ssize_t)sizeof(p->seed))
        abort();
    p->registry = r;
    p->watch = (struct silt_watch){.fd = -1, .on_ready = on_ready};
    silt_list_init(&p->queue);
    silt_list_init(&p->visits);
    silt_list_init(&p->drops);
    silt_map_init(&p->by_number);
    silt_map_init(&p->by_alias);
    r->preview = p;
}

static void close_channel(struct silt_registry *r)
{
    struct silt_preview *p = r->preview;
    silt_list_each(it, &p->drops) /* those who waited are gone with siltd */
    {
        struct drop *d = silt_outer(it, struct drop, link);
        silt_loop_cancel(p->registry->loop, &d->late);
        silt_list_remove(&d->link);
        free(d);
    }
    hang_up(p);
    silt_preview_dial_leave_all(p);
    silt_preview_dial_forget_all(p);
}

static void free_channel(struct silt_registry *r)
{
    struct silt_preview *p = r->preview;
    if (p == NULL)
        return;
    silt_map_fini(&p->by_number);
    silt_map_fini(&p->by_alias);
    free(p);
}

void silt_preview_connect(struct silt_preview *p, int fd)
{
    struct silt_error e;
    hang_up(p);
    if (silt_fd_nonblock(fd, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "preview.channel", "error=\"%s\"", e.text);
        silt_close_fd(&fd);
        return;
    }
    p->watch.fd = fd;
    silt_list_each(it, &p->drops) say_drop(silt_outer(it, struct drop, link));
    pump(p);
}

silt_slice silt_preview_secret(const struct silt_preview *p)
{
    return silt_slice_of(p->secret);
}

/* Exposed ports */

void silt_preview_add(struct silt_exposed_port *x)
{
    silt_map_put(&x->sandbox->registry->preview->by_number, key_of(&x->row.route), x);
}

void silt_preview_remove(struct silt_exposed_port *x)
{
    silt_preview_dial_close_all(x);
    set_used(x, false);
    (void)silt_map_remove(&x->sandbox->registry->preview->by_number, key_of(&x->row.route));
}

void silt_preview_add_alias(struct silt_sandbox *s)
{
    silt_map_put(&s->registry->preview->by_alias, silt_slice_of(s->row.alias), s);
}

void silt_preview_remove_alias(struct silt_sandbox *s)
{
    if (s->row.alias[0] != 0)
        (void)silt_map_remove(&s->registry->preview->by_alias, silt_slice_of(s->row.alias));
}

static int load(struct silt_registry *r, struct silt_error *e)
{
    for (uint32_t i = 0; i < r->settings.slots; i++)
        if (r->by_slot[i] != NULL && r->by_slot[i]->row.alias[0] != 0)
            silt_preview_add_alias(r->by_slot[i]);
    return silt_store_secret(r->store, "preview", r->preview->secret, e);
}

const struct silt_facet silt_preview_facet = {
    .open = open_channel, .load = load, .close = close_channel, .free = free_channel};
