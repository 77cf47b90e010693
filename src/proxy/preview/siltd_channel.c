/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/siltd_channel.h"
#include "base/log.h"

#include <errno.h>

enum { BATCH = 64, ASKED_MAX = SILT_PREVIEW_OPEN_MAX - 24 };

static silt_slice key_of(const uint32_t *serial)
{
    return (silt_slice){(const char *)serial, sizeof(*serial)};
}

static void hang_up(struct silt_preview_channel *t)
{
    if (t->channel.fd < 0)
        return;
    silt_loop_forget(t->loop, &t->channel);
    silt_close_fd(&t->channel.fd);
}

/* A new channel is made only for a new process, so exit: the next silt-preview gets one. */
static void give_up(struct silt_preview_channel *t, const char *why)
{
    silt_log(SILT_LOG_ERROR, "preview.channel", "error=\"%s\"", why);
    hang_up(t);
    silt_loop_stop(t->loop);
}

/* false: not now. Requests lost with a broken channel are sent again on the next one. */
static bool send_request(struct silt_preview_channel *t, struct silt_preview_request *q)
{
    struct silt_parcel p = {.data = q, .len = sizeof(*q)};
    struct silt_error e;
    if (t->channel.fd < 0 || t->full)
        return false;
    if (silt_fd_send(t->channel.fd, &p, &e) == 0 || e.sys != EAGAIN)
        return true;
    t->full = true;
    return false;
}

static void watch(struct silt_preview_channel *t)
{
    if (t->channel.fd >= 0)
        silt_loop_watch(t->loop, &t->channel, EPOLLIN | (t->full ? (uint32_t)EPOLLOUT : 0U));
}

static void flush_tells(struct silt_preview_channel *t)
{
    while (t->told > 0) {
        struct silt_preview_request q = {.type = t->tells[t->first].type,
                                         .serial = t->tells[t->first].serial,
                                         .route = t->tells[t->first].route,
                                         .body.using = t->tells[t->first].using};
        if (!send_request(t, &q))
            return;
        t->first = (t->first + 1) % SILT_PREVIEW_CHANNEL_TELL_MAX;
        t->told--;
    }
}

static void tell(struct silt_preview_channel *t, uint32_t type, uint32_t serial, uint64_t route,
                 uint32_t using)
{
    if (t->channel.fd < 0)
        return; /* a new siltd does not know it anyway */
    if (t->told == SILT_PREVIEW_CHANNEL_TELL_MAX) {
        give_up(t, "siltd does not listen");
        return;
    }
    size_t at = (t->first + t->told++) % SILT_PREVIEW_CHANNEL_TELL_MAX;
    t->tells[at].type = type;
    t->tells[at].serial = serial;
    t->tells[at].route = route;
    t->tells[at].using = using;
    flush_tells(t);
    watch(t);
}

static void put_back(struct silt_preview_channel *t, struct silt_preview_channel_ask *a)
{
    (void)silt_map_remove(&t->serials, key_of(&a->serial));
    silt_list_remove(&a->link);
    a->serial = 0;
    t->count--;
}

static uint32_t next_serial(struct silt_preview_channel *t)
{
    do
        t->last++;
    while (t->last == 0 || silt_map_find(&t->serials, key_of(&t->last)) != NULL);
    return t->last;
}

static void mark_asked(struct silt_preview_channel *t, struct silt_preview_channel_ask *a,
                       uint32_t serial)
{
    a->serial = serial;
    a->along = 0;
    silt_list_remove(&a->link);
    silt_list_append(&t->asked, &a->link);
    silt_map_put(&t->serials, key_of(&a->serial), a);
    t->count++;
}

/* false: no more of them now. */
static bool send_ask(struct silt_preview_channel *t, struct silt_preview_channel_ask *a)
{
    struct silt_preview_request q = {0};
    if (!a->fill(a, &q))
        return true;
    q.serial = next_serial(t);
    if (!send_request(t, &q))
        return false;
    mark_asked(t, a, q.serial);
    return true;
}

void silt_preview_channel_flush(struct silt_preview_channel *t)
{
    flush_tells(t);
    silt_list_each(it, &t->waiting)
    {
        if (t->count >= ASKED_MAX
            || !send_ask(t, silt_outer(it, struct silt_preview_channel_ask, link)))
            break;
    }
    watch(t);
}

static void add_waiting(struct silt_preview_channel *t, struct silt_preview_channel_ask *a)
{
    a->serial = 0;
    a->open = true;
    silt_list_init(&a->link);
    silt_list_append(&t->waiting, &a->link);
}

void silt_preview_channel_ask_both(struct silt_preview_channel *t,
                                   struct silt_preview_channel_ask *find,
                                   struct silt_preview_channel_ask *dial, uint32_t wait_ms)
{
    struct silt_preview_request q = {0};
    add_waiting(t, find);
    add_waiting(t, dial);
    if (t->count + 2 <= ASKED_MAX && find->fill(find, &q)) {
        q.serial = next_serial(t);
        q.body.find.dial = next_serial(t);
        q.body.find.wait_ms = wait_ms;
        if (send_request(t, &q)) {
            mark_asked(t, find, q.serial);
            mark_asked(t, dial, q.body.find.dial);
            find->along = dial->serial;
        }
    }
    watch(t);
}

void silt_preview_channel_ask(struct silt_preview_channel *t, struct silt_preview_channel_ask *a)
{
    add_waiting(t, a);
    if (t->channel.fd >= 0 && t->count < ASKED_MAX)
        (void)send_ask(t, a);
    watch(t);
}

void silt_preview_channel_leave(struct silt_preview_channel *t, struct silt_preview_channel_ask *a)
{
    if (!a->open)
        return;
    a->open = false;
    if (a->serial == 0) {
        silt_list_remove(&a->link);
        return;
    }
    uint32_t serial = a->serial;
    put_back(t, a);
    tell(t, SILT_PREVIEW_LEAVE, serial, 0, 0);
}

void silt_preview_channel_use(struct silt_preview_channel *t, uint64_t route, uint32_t using)
{
    tell(t, SILT_PREVIEW_USE, 0, route, using);
}

void silt_preview_channel_dropped(struct silt_preview_channel *t, uint64_t route)
{
    tell(t, SILT_PREVIEW_DROPPED, 0, route, 0);
}

static void on_answer(struct silt_preview_channel *t, const struct silt_preview_answer *n,
                      struct silt_parcel *p)
{
    if (n->type == SILT_PREVIEW_DROP) {
        t->hooks.on_drop(t->hooks.context, n->route);
        return;
    }
    if (n->type == SILT_PREVIEW_HAND) {
        if (p->nfds == 2)
            t->hooks.on_hand(t->hooks.context, n, p->fds);
        return;
    }
    struct silt_preview_channel_ask *a = silt_map_find(&t->serials, key_of(&n->serial));
    if (a == NULL)
        return; /* cancelled meanwhile */
    put_back(t, a);
    a->open = false;
    struct silt_preview_channel_ask *along =
        a->along != 0 ? silt_map_find(&t->serials, key_of(&a->along)) : NULL;
    if (along != NULL && n->type != SILT_PREVIEW_ROUTE) { /* siltd did not start the dial */
        put_back(t, along);
        silt_list_append(&t->waiting, &along->link);
    }
    if (p->nfds == 0)
        p->fds[0] = -1;
    a->on_answer(a, n, &p->fds[0]);
}

static void on_channel(struct silt_watch *w, uint32_t events)
{
    struct silt_preview_channel *t = silt_outer(w, struct silt_preview_channel, channel);
    if ((events & EPOLLOUT) != 0)
        t->full = false;
    for (int i = 0; i < BATCH && t->channel.fd >= 0; i++) {
        struct silt_preview_answer n;
        struct silt_parcel p = {.data = &n, .len = sizeof(n)};
        struct silt_error e;
        int got = silt_fd_recv(w->fd, &p, &e);
        if (got < 0 && e.sys == EAGAIN)
            break;
        if (got == 0 || (got < 0 && e.sys != 0)) {
            hang_up(t); /* silt-super sends a new one when there is a new siltd */
            return;
        }
        if (got < 0 || p.len != sizeof(n)) {
            silt_parcel_close(&p);
            give_up(t, "a message is not whole");
            return;
        }
        n.body.text[sizeof(n.body.text) - 1] = 0;
        on_answer(t, &n, &p);
        silt_parcel_close(&p);
    }
    silt_preview_channel_flush(t);
}

void silt_preview_channel_init(struct silt_preview_channel *t, struct silt_loop *loop,
                               const struct silt_preview_channel_hooks *hooks)
{
    *t = (struct silt_preview_channel){.loop = loop, .hooks = *hooks, .channel = {.fd = -1}};
    silt_list_init(&t->waiting);
    silt_list_init(&t->asked);
    silt_map_init(&t->serials);
}

void silt_preview_channel_replace(struct silt_preview_channel *t, int channel)
{
    struct silt_error ignored;
    hang_up(t);
    (void)silt_fd_nonblock(channel, &ignored);
    silt_list_each(it, &t->asked)
    {
        struct silt_preview_channel_ask *a = silt_outer(it, struct silt_preview_channel_ask, link);
        put_back(t, a);
        silt_list_append(&t->waiting, &a->link);
    }
    t->told = 0;
    t->full = false;
    t->channel = (struct silt_watch){.fd = channel, .on_ready = on_channel};
    watch(t);
}
