/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/channel.h"
#include "wire/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
    FRAMES_PER_TURN = 16,
    /* Above this many queued bytes we stop reading requests, since every request causes a response.
     * Running operations add at most one final frame per exec and session, so the queue stays below
     * 1 MiB. */
    QUEUE_MARK = 128 << 10,
};

struct queued {
    struct silt_link link;
    size_t len;
    char bytes[];
};

/* One byte more than a frame, so that the last part of a request can be NUL-terminated in place. */
static union {
    struct silt_frame frame;
    char bytes[SILT_FRAME_MAX + 1];
} incoming;

static void watch(struct silt_channel *c)
{
    uint32_t events = 0;
    if (c->queued < QUEUE_MARK)
        events |= EPOLLIN;
    if (!silt_list_empty(&c->queue))
        events |= EPOLLOUT;
    silt_loop_watch(c->loop, &c->watch, events);
}

static void drop_queue(struct silt_channel *c)
{
    silt_list_each(it, &c->queue) free(silt_outer(it, struct queued, link));
    silt_list_init(&c->queue);
    c->queued = 0;
}

static void wake_waits(struct silt_channel *c)
{
    struct silt_link waits;
    if (silt_list_empty(&c->waits))
        return;
    waits = c->waits; /* a wait added meanwhile is for the next time */
    waits.next->prev = &waits;
    waits.prev->next = &waits;
    silt_list_init(&c->waits);
    while (!silt_list_empty(&waits)) {
        struct silt_channel_wait *w = silt_outer(waits.next, struct silt_channel_wait, link);
        silt_list_remove(&w->link);
        w->on_free(w);
    }
}

static void lose(struct silt_channel *c)
{
    if (c->gone)
        return;
    c->gone = true;
    silt_loop_forget(c->loop, &c->watch);
    drop_queue(c);
    c->on_gone(c);
    wake_waits(c);
}

/* 1: sent, 0: full, -1: the peer is gone. */
static int send_parts(const struct silt_channel *c, struct iovec *parts, size_t count)
{
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = (__typeof__(m.msg_iovlen))count};
    ssize_t n;
    do
        n = sendmsg(c->watch.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return 1;
    /* ENOBUFS and ENOMEM are transient: the machine is short of memory, the peer is fine. */
    return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? 0 : -1;
}

static void enqueue(struct silt_channel *c, const struct iovec *parts, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].iov_len;
    struct queued *q = malloc(sizeof(*q) + len);
    if (q == NULL)
        abort();
    q->len = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].iov_len > 0)
            memcpy(q->bytes + q->len, parts[i].iov_base, parts[i].iov_len);
        q->len += parts[i].iov_len;
    }
    silt_list_append(&c->queue, &q->link);
    c->queued += len;
}

static void *unconst(const void *p)
{
    union {
        const void *in;
        void *out;
    } u = {.in = p}; /* sendmsg does not write to the buffers */
    return u.out;
}

void silt_channel_say(struct silt_channel *c, const struct silt_say *s)
{
    struct silt_frame head = {.type = s->type, .flags = s->flags, .id = s->id};
    struct iovec parts[] = {
        {.iov_base = &head, .iov_len = sizeof(head)},
        {.iov_base = unconst(s->head.data), .iov_len = s->head.len},
        {.iov_base = unconst(s->tail.data), .iov_len = s->tail.len},
    };
    if (c->gone)
        return;
    int sent = silt_list_empty(&c->queue) ? send_parts(c, parts, SILT_COUNT(parts)) : 0;
    if (sent < 0)
        lose(c);
    if (sent != 0)
        return;
    enqueue(c, parts, SILT_COUNT(parts));
    watch(c);
}

void silt_channel_say_failed(struct silt_channel *c, uint64_t id, const struct silt_error *e)
{
    struct silt_say s = {
        .type = SILT_AGENT_FAILED, .id = id, .head = {(const char *)e, sizeof(*e)}};
    silt_channel_say(c, &s);
}

static void flush(struct silt_channel *c)
{
    while (!silt_list_empty(&c->queue)) {
        struct queued *q = silt_list_first(&c->queue, struct queued, link);
        struct iovec part = {.iov_base = q->bytes, .iov_len = q->len};
        int sent = send_parts(c, &part, 1);
        if (sent < 0)
            lose(c);
        if (sent <= 0)
            return;
        silt_list_remove(&q->link);
        c->queued -= q->len;
        free(q);
    }
    watch(c);
    wake_waits(c);
}

static void listen_once(struct silt_channel *c, bool *more)
{
    struct silt_error e;
    struct silt_parcel p = {.data = incoming.bytes, .len = SILT_FRAME_MAX};
    int got = silt_fd_recv(c->watch.fd, &p, &e);
    *more = got > 0;
    if (got < 0 && (e.sys == EAGAIN || e.code == SILT_PROTOCOL)) {
        *more = e.sys != EAGAIN; /* ignore what is too large for a frame */
        return;
    }
    if (got <= 0) {
        lose(c);
        return;
    }
    if (p.len >= sizeof(struct silt_frame))
        c->on_frame(c, &incoming.frame, p.len - sizeof(struct silt_frame), &p);
    silt_parcel_close(&p);
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_channel *c = silt_outer(w, struct silt_channel, watch);
    if (events & EPOLLOUT)
        flush(c);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        bool more = true;
        for (int i = 0; i < FRAMES_PER_TURN && more && !c->gone && c->queued < QUEUE_MARK; i++)
            listen_once(c, &more);
    }
    if (!c->gone)
        watch(c);
}

int silt_channel_open(struct silt_channel *c, struct silt_loop *loop, int sock,
                      struct silt_error *e)
{
    c->loop = loop;
    c->watch = (struct silt_watch){.fd = sock, .on_ready = on_ready};
    silt_list_init(&c->queue);
    silt_list_init(&c->waits);
    if (silt_fd_nonblock(sock, e) < 0)
        return silt_because(e, "open the channel");
    watch(c);
    return 0;
}

void silt_channel_forget(struct silt_channel *c)
{
    drop_queue(c);
    if (!c->gone)
        watch(c);
    wake_waits(c);
}

bool silt_channel_is_free(const struct silt_channel *c)
{
    return silt_list_empty(&c->queue);
}

void silt_channel_wait(struct silt_channel *c, struct silt_channel_wait *w)
{
    if (silt_list_empty(&w->link))
        silt_list_append(&c->waits, &w->link);
}
