/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/talk.h"
#include "base/log.h"

#include <errno.h>

enum { BATCH = 64, ASKED_MAX = SILT_PREVIEW_OPEN_MAX - 24 };

static silt_slice key_of(const uint32_t *serial)
{
    return (silt_slice){(const char *)serial, sizeof(*serial)};
}

static void hang_up(struct silt_talk *t)
{
    if (t->channel.fd < 0)
        return;
    silt_loop_forget(t->loop, &t->channel);
    silt_close_fd(&t->channel.fd);
}

/* Nobody makes another channel while both ends live: the next silt-preview gets one. */
static void give_up(struct silt_talk *t, const char *why)
{
    silt_log(SILT_LOG_ERROR, "preview.channel", "error=\"%s\"", why);
    hang_up(t);
    silt_loop_stop(t->loop);
}

/* false: not now. What a broken channel swallows is asked again on the next. */
static bool send_request(struct silt_talk *t, struct silt_preview_request *q)
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

static void watch(struct silt_talk *t)
{
    if (t->channel.fd >= 0)
        silt_loop_watch(t->loop, &t->channel, EPOLLIN | (t->full ? (uint32_t)EPOLLOUT : 0U));
}

static void flush_tells(struct silt_talk *t)
{
    while (t->told > 0) {
        struct silt_preview_request q = {.type = t->tells[t->first].type,
                                         .serial = t->tells[t->first].serial,
                                         .route = t->tells[t->first].route,
                                         .body.using = t->tells[t->first].using};
        if (!send_request(t, &q))
            return;
        t->first = (t->first + 1) % SILT_TALK_TELL_MAX;
        t->told--;
    }
}

static void tell(struct silt_talk *t, uint32_t type, uint32_t serial, uint64_t route, uint32_t using)
{
    if (t->channel.fd < 0)
        return; /* the next siltd knows nothing of it */
    if (t->told == SILT_TALK_TELL_MAX) {
        give_up(t, "siltd does not listen");
        return;
    }
    size_t at = (t->first + t->told++) % SILT_TALK_TELL_MAX;
    t->tells[at].type = type;
    t->tells[at].serial = serial;
    t->tells[at].route = route;
    t->tells[at].using = using;
    flush_tells(t);
    watch(t);
}

static void put_back(struct silt_talk *t, struct silt_talk_ask *a)
{
    (void)silt_map_remove(&t->serials, key_of(&a->serial));
    silt_list_remove(&a->link);
    a->serial = 0;
    t->count--;
}

/* false: no more of them now. */
static bool send_ask(struct silt_talk *t, struct silt_talk_ask *a)
{
    struct silt_preview_request q = {0};
    if (!a->fill(a, &q))
        return true;
    do
        q.serial = ++t->last;
    while (q.serial == 0 || silt_map_find(&t->serials, key_of(&q.serial)) != NULL);
    if (!send_request(t, &q))
        return false;
    a->serial = q.serial;
    silt_list_remove(&a->link);
    silt_list_append(&t->asked, &a->link);
    silt_map_put(&t->serials, key_of(&a->serial), a);
    t->count++;
    return true;
}

void silt_talk_flush(struct silt_talk *t)
{
    flush_tells(t);
    silt_list_each(it, &t->waiting)
    {
        if (t->count >= ASKED_MAX || !send_ask(t, silt_container_of(it, struct silt_talk_ask, link)))
            break;
    }
    watch(t);
}

void silt_talk_ask(struct silt_talk *t, struct silt_talk_ask *a)
{
    a->serial = 0;
    a->open = true;
    silt_list_init(&a->link);
    silt_list_append(&t->waiting, &a->link);
    if (t->channel.fd >= 0 && t->count < ASKED_MAX)
        (void)send_ask(t, a);
    watch(t);
}

void silt_talk_leave(struct silt_talk *t, struct silt_talk_ask *a)
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

void silt_talk_use(struct silt_talk *t, uint64_t route, uint32_t using)
{
    tell(t, SILT_PREVIEW_USE, 0, route, using);
}

void silt_talk_dropped(struct silt_talk *t, uint64_t route)
{
    tell(t, SILT_PREVIEW_DROPPED, 0, route, 0);
}

static void on_answer(struct silt_talk *t, const struct silt_preview_answer *n, struct silt_parcel *p)
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
    struct silt_talk_ask *a = silt_map_find(&t->serials, key_of(&n->serial));
    if (a == NULL)
        return; /* left meanwhile */
    put_back(t, a);
    a->open = false;
    if (p->nfds == 0)
        p->fds[0] = -1;
    a->on_answer(a, n, &p->fds[0]);
}

static void on_channel(struct silt_watch *w, uint32_t events)
{
    struct silt_talk *t = silt_container_of(w, struct silt_talk, channel);
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
    silt_talk_flush(t);
}

void silt_talk_init(struct silt_talk *t, struct silt_loop *loop, const struct silt_talk_hooks *hooks)
{
    *t = (struct silt_talk){.loop = loop, .hooks = *hooks, .channel = {.fd = -1}};
    silt_list_init(&t->waiting);
    silt_list_init(&t->asked);
    silt_map_init(&t->serials);
}

void silt_talk_replace(struct silt_talk *t, int channel)
{
    struct silt_error ignored;
    hang_up(t);
    (void)silt_fd_nonblock(channel, &ignored);
    silt_list_each(it, &t->asked)
    {
        struct silt_talk_ask *a = silt_container_of(it, struct silt_talk_ask, link);
        put_back(t, a);
        silt_list_append(&t->waiting, &a->link);
    }
    t->told = 0;
    t->full = false;
    t->channel = (struct silt_watch){.fd = channel, .on_ready = on_channel};
    watch(t);
}
