/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/dial_client.h"
#include "base/fd.h"
#include "wire/dial.h"

#include <errno.h>
#include <sys/socket.h>

enum { QUIET_MS = 1000 };

static struct silt_dial_client_stock *stock_of(struct silt_dial_client *d, int family)
{
    return &d->stocks[family == AF_INET ? 0 : 1];
}

static void hang_up(struct silt_dial_client *d)
{
    if (d->channel.fd < 0)
        return;
    silt_loop_forget(d->loop, &d->channel);
    silt_close_fd(&d->channel.fd);
    d->stocks[0].asked = d->stocks[1].asked = false;
}

static void refill(struct silt_dial_client *d, struct silt_dial_client_stock *s)
{
    size_t room = SILT_DIAL_CLIENT_READY - s->count;
    struct silt_dial_request q = {.family = (uint32_t)s->family,
                                  .count = room < SILT_DIAL_MAX ? (uint32_t)room : SILT_DIAL_MAX};
    struct silt_parcel p = {.data = &q, .len = sizeof(q)};
    struct silt_error e;
    if (d->channel.fd < 0 || s->asked || room == 0)
        return;
    if (silt_fd_send(d->channel.fd, &p, &e) < 0)
        hang_up(d); /* closed; silt-super sends another channel */
    else
        s->asked = true;
}

static void serve(struct silt_dial_client *d, struct silt_dial_client_stock *s)
{
    while (s->count > 0 && !silt_list_empty(&s->wants)) {
        struct silt_dial_client_want *w =
            silt_list_first(&s->wants, struct silt_dial_client_want, link);
        silt_list_remove(&w->link);
        w->on_socket(w, s->fds[--s->count]);
    }
    if (s->count <= SILT_DIAL_CLIENT_READY - SILT_DIAL_MAX)
        refill(d, s);
    else if (s->count < SILT_DIAL_CLIENT_READY)
        silt_loop_after(d->loop, &s->fill, QUIET_MS);
}

static void on_quiet(struct silt_timer *t)
{
    struct silt_dial_client_stock *s = silt_outer(t, struct silt_dial_client_stock, fill);
    refill(s->dialer, s);
}

static void take(struct silt_dial_client *d, const struct silt_dial_answer *a,
                 struct silt_parcel *p)
{
    struct silt_dial_client_stock *s = stock_of(d, (int)a->family);
    s->asked = false;
    for (int i = 0; i < p->nfds && s->count < SILT_DIAL_CLIENT_READY; i++)
        s->fds[s->count++] = silt_take_fd(&p->fds[i]);
    silt_parcel_close(p);
    if (s->count > 0)
        serve(d, s); /* otherwise the channel is full: the next caller retries */
}

static void on_channel(struct silt_watch *w, uint32_t events)
{
    struct silt_dial_client *d = silt_outer(w, struct silt_dial_client, channel);
    struct silt_dial_answer a;
    struct silt_parcel p = {.data = &a, .len = sizeof(a)};
    struct silt_error e;
    (void)events;
    int got = silt_fd_recv(w->fd, &p, &e);
    if (got < 0 && e.sys == EAGAIN)
        return;
    if (got <= 0 || p.len != sizeof(a)) {
        silt_parcel_close(&p);
        hang_up(d);
        return;
    }
    take(d, &a, &p);
}

void silt_dial_client_init(struct silt_dial_client *d, struct silt_loop *loop)
{
    *d = (struct silt_dial_client){.loop = loop, .channel = {.fd = -1}};
    for (int i = 0; i < 2; i++) {
        d->stocks[i].family = i == 0 ? AF_INET : AF_INET6;
        d->stocks[i].dialer = d;
        d->stocks[i].fill.on_time = on_quiet;
        silt_list_init(&d->stocks[i].wants);
    }
}

void silt_dial_client_replace(struct silt_dial_client *d, int channel)
{
    struct silt_error ignored;
    hang_up(d);
    (void)silt_fd_nonblock(channel, &ignored);
    d->channel = (struct silt_watch){.fd = channel, .on_ready = on_channel};
    silt_loop_watch(d->loop, &d->channel, EPOLLIN);
    for (int i = 0; i < 2; i++)
        refill(d, &d->stocks[i]);
}

void silt_dial_client_ask(struct silt_dial_client *d, struct silt_dial_client_want *w)
{
    struct silt_dial_client_stock *s = stock_of(d, w->family);
    silt_list_append(&s->wants, &w->link);
    serve(d, s);
}

void silt_dial_client_leave(struct silt_dial_client_want *w)
{
    silt_list_remove(&w->link);
}
