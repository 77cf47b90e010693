/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/core/relay.h"
#include "base/own.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

enum {
    ALIVE_S = 60, /* keepalive interval */
    PIECE_LEAST = 4 << 10,
};

static char piece[SILT_RELAY_PIECE_MAX]; /* scratch: valid until the next read */

/* One connection */

static int send_some(int fd, silt_slice *bytes, uint64_t *count)
{
    if (bytes->len == 0)
        return 0;
    ssize_t n = send(fd, bytes->data, bytes->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    bytes->data += n;
    bytes->len -= (size_t)n;
    *count += (uint64_t)n;
    return 0;
}

int silt_relay_flush(int fd, struct silt_buf *b, uint64_t *count)
{
    silt_slice rest = silt_buf_slice(b);
    if (b->broken || send_some(fd, &rest, count) < 0)
        return -1;
    silt_buf_drop(b, b->len - rest.len);
    if (b->len == 0 && b->cap > SILT_RELAY_KEEP)
        silt_buf_fini(b);
    return 0;
}

int silt_relay_forward(int fd, struct silt_buf *b, silt_slice bytes, uint64_t *count)
{
    if (b->len == 0 && send_some(fd, &bytes, count) < 0)
        return -1;
    silt_buf_add(b, bytes);
    return b->broken ? -1 : 0;
}

void silt_relay_reset_at_close(int fd)
{
    struct linger now = {.l_onoff = 1};
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void silt_relay_keep_alive(int fd)
{
    int yes = 1, idle = ALIVE_S, every = ALIVE_S / 4;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

size_t silt_relay_share(size_t all, size_t count, size_t most)
{
    size_t share = all / count;
    if (share > most)
        return most;
    return share > PIECE_LEAST ? share : PIECE_LEAST;
}

/* The end */

static void close_side(struct silt_relay *r, struct silt_relay_side *s, bool reset)
{
    if (s->watch.fd < 0 || s->io != NULL)
        return;
    if (reset)
        silt_relay_reset_at_close(s->watch.fd);
    silt_loop_forget(r->loop, &s->watch);
    silt_close_fd(&s->watch.fd);
}

static void finish(struct silt_relay *r, bool broken)
{
    if (r->over)
        return;
    r->over = true;
    silt_loop_cancel(r->loop, &r->idle);
    close_side(r, &r->sides[SILT_RELAY_CLIENT], broken);
    close_side(r, &r->sides[SILT_RELAY_SERVER], broken);
    r->owner->on_over(r, broken);
}

void silt_relay_break(struct silt_relay *r)
{
    finish(r, true);
}

static void on_broken(struct silt_relay *r, enum silt_relay_end side)
{
    if (r->owner->on_broken != NULL)
        r->owner->on_broken(r, side);
    else
        silt_relay_break(r);
}

/* Bytes */

static enum silt_relay_end other(enum silt_relay_end side)
{
    return side == SILT_RELAY_CLIENT ? SILT_RELAY_SERVER : SILT_RELAY_CLIENT;
}

static bool is_open(const struct silt_relay_side *s)
{
    return s->watch.fd >= 0 && !s->connecting;
}

/* Updates the byte count and the time of the last activity. */
static void count_sent(struct silt_relay *r, struct silt_relay_side *s, uint64_t sent)
{
    if (sent > 0)
        r->active_ms = r->loop->now_ms;
    if (s->count != NULL)
        *s->count += sent;
}

void silt_relay_put(struct silt_relay *r, enum silt_relay_end to, silt_slice bytes)
{
    struct silt_relay_side *s = &r->sides[to];
    uint64_t sent = 0;
    int result = 0;
    if (s->io != NULL && s->io->send != NULL) {
        result = s->io->send(r, bytes);
    } else if (is_open(s)) {
        result = silt_relay_forward(s->watch.fd, s->out, bytes, &sent);
    } else {
        silt_buf_add(s->out, bytes);
        result = s->out->broken ? -1 : 0;
    }
    count_sent(r, s, sent);
    if (result < 0)
        on_broken(r, to);
}

void silt_relay_push(struct silt_relay *r, enum silt_relay_end to)
{
    struct silt_relay_side *s = &r->sides[to];
    uint64_t sent = 0;
    if (!is_open(s))
        return;
    int result = s->io != NULL && s->io->flush != NULL
                     ? s->io->flush(r)
                     : silt_relay_flush(s->watch.fd, s->out, &sent);
    count_sent(r, s, sent);
    if (result < 0)
        on_broken(r, to);
}

bool silt_relay_reads(const struct silt_relay *r, enum silt_relay_end from)
{
    const struct silt_relay_side *s = &r->sides[from];
    return is_open(s) && !s->ended && !s->paused && r->sides[other(from)].out->len == 0;
}

static ssize_t receive(struct silt_relay *r, enum silt_relay_end from, size_t room)
{
    struct silt_relay_side *s = &r->sides[from];
    if (room > sizeof(piece))
        room = sizeof(piece);
    return s->io != NULL && s->io->recv != NULL ? s->io->recv(r, piece, room)
                                                : recv(s->watch.fd, piece, room, MSG_DONTWAIT);
}

static void on_bytes(struct silt_relay *r, enum silt_relay_end from, silt_slice bytes)
{
    if (r->owner->filter != NULL)
        r->owner->filter(r, from, bytes);
    else
        silt_relay_put(r, other(from), bytes);
}

bool silt_relay_pull(struct silt_relay *r, enum silt_relay_end from)
{
    struct silt_relay_side *s = &r->sides[from];
    if (!silt_relay_reads(r, from))
        return false;
    size_t room = r->owner->room != NULL ? r->owner->room(r, from) : SILT_RELAY_PIECE;
    s->paused = room == 0;
    if (s->paused)
        return false;
    ssize_t n = receive(r, from, room);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            on_broken(r, from);
        return false;
    }
    r->active_ms = r->loop->now_ms;
    s->ended = n == 0;
    if (n > 0)
        on_bytes(r, from, (silt_slice){piece, (size_t)n});
    else if (r->owner->on_ended != NULL)
        r->owner->on_ended(r, from);
    return n > 0 && !r->over;
}

/* Watching */

/* Passes the end of one side on as a half-close of the other. */
static void pass_end_on(struct silt_relay *r, enum silt_relay_end from)
{
    struct silt_relay_side *to = &r->sides[other(from)];
    if (!r->sides[from].ended || to->shut || !is_open(to) || to->out->len > 0)
        return;
    to->shut = true;
    if (to->io != NULL && to->io->shut != NULL)
        to->io->shut(r);
    else
        (void)shutdown(to->watch.fd, SHUT_WR);
}

static void watch(struct silt_relay *r, enum silt_relay_end side)
{
    struct silt_relay_side *s = &r->sides[side];
    bool reads = silt_relay_reads(r, side);
    uint32_t events = reads ? (uint32_t)EPOLLIN : 0U;
    if (s->io != NULL) {
        s->io->watch(r, reads);
        return;
    }
    if (s->connecting || s->out->len > 0)
        events |= EPOLLOUT;
    if (events == 0 && r->eager)
        events = EPOLLET; /* errors are still reported */
    if (s->watch.fd >= 0)
        silt_loop_watch(r->loop, &s->watch, events);
}

void silt_relay_settle(struct silt_relay *r)
{
    if (r->over)
        return;
    if (!r->apart) {
        pass_end_on(r, SILT_RELAY_CLIENT);
        pass_end_on(r, SILT_RELAY_SERVER);
    }
    if (r->sides[SILT_RELAY_CLIENT].shut && r->sides[SILT_RELAY_SERVER].shut) {
        finish(r, false);
        return;
    }
    watch(r, SILT_RELAY_CLIENT);
    watch(r, SILT_RELAY_SERVER);
}

static void on_connected(struct silt_relay *r)
{
    struct silt_relay_side *s = &r->sides[SILT_RELAY_SERVER];
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(s->watch.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0) {
        on_broken(r, SILT_RELAY_SERVER);
        return;
    }
    s->connecting = false;
    r->active_ms = r->loop->now_ms;
    if (r->owner->on_connected != NULL)
        r->owner->on_connected(r);
}

void silt_relay_on_ready(struct silt_relay *r, enum silt_relay_end side, uint32_t events)
{
    struct silt_relay_side *s = &r->sides[side];
    bool failed = (events & EPOLLERR) != 0;
    if (!r->over && s->connecting)
        on_connected(r);
    if (!r->over && failed && r->eager && (events & EPOLLIN) == 0)
        on_broken(r, side);
    if (!r->over && s->out->len > 0)
        silt_relay_push(r, side);
    if (!r->over)
        (void)silt_relay_pull(r, side);
    if (!r->over && failed && s->ended)
        on_broken(r, side);
    silt_relay_settle(r);
}

static void on_client(struct silt_watch *w, uint32_t events)
{
    struct silt_relay *r = silt_outer(w, struct silt_relay, sides[SILT_RELAY_CLIENT].watch);
    silt_relay_on_ready(r, SILT_RELAY_CLIENT, events);
}

static void on_server(struct silt_watch *w, uint32_t events)
{
    struct silt_relay *r = silt_outer(w, struct silt_relay, sides[SILT_RELAY_SERVER].watch);
    silt_relay_on_ready(r, SILT_RELAY_SERVER, events);
}

/* Time */

static void on_idle(struct silt_timer *t)
{
    struct silt_relay *r = silt_outer(t, struct silt_relay, idle);
    bool half = r->sides[SILT_RELAY_CLIENT].ended || r->sides[SILT_RELAY_SERVER].ended;
    int64_t left = r->active_ms + (half ? r->half_ms : r->idle_ms) - r->loop->now_ms;
    if (left <= 0)
        silt_relay_break(r);
    else
        silt_loop_after(r->loop, t, left < r->half_ms ? left : r->half_ms);
}

void silt_relay_limit(struct silt_relay *r, int64_t idle_ms, int64_t half_ms)
{
    r->idle_ms = idle_ms;
    r->half_ms = half_ms;
    silt_loop_after(r->loop, &r->idle, half_ms);
}

/* The beginning */

void silt_relay_init(struct silt_relay *r, struct silt_loop *loop,
                     const struct silt_relay_owner *owner)
{
    *r = (struct silt_relay){
        .loop = loop, .owner = owner, .idle = {.on_time = on_idle}, .active_ms = loop->now_ms};
}

void silt_relay_attach(struct silt_relay *r, enum silt_relay_end side, int fd, struct silt_buf *out,
                       uint64_t *count)
{
    r->sides[side] = (struct silt_relay_side){
        .watch = {.fd = fd, .on_ready = side == SILT_RELAY_CLIENT ? on_client : on_server},
        .out = out,
        .count = count};
    if (fd >= 0)
        silt_relay_keep_alive(fd);
}

void silt_relay_borrow(struct silt_relay *r, enum silt_relay_end side, int fd, struct silt_buf *out,
                       const struct silt_relay_io *io)
{
    r->sides[side] = (struct silt_relay_side){.watch = {.fd = fd}, .out = out, .io = io};
}

void silt_relay_connect(struct silt_relay *r, int fd, const struct sockaddr *to, socklen_t len)
{
    struct silt_relay_side *s = &r->sides[SILT_RELAY_SERVER];
    s->watch.fd = fd;
    s->connecting = true;
    silt_relay_keep_alive(fd);
    if (connect(fd, to, len) < 0 && errno != EINPROGRESS)
        on_broken(r, SILT_RELAY_SERVER);
    silt_relay_settle(r);
}

bool silt_relay_is_connected(const struct silt_relay *r)
{
    return is_open(&r->sides[SILT_RELAY_SERVER]);
}
