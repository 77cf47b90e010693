/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/visitor.h"
#include "proxy/flow.h"
#include "proxy/veil.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

enum {
    BATCH = 64, /* accepted in one turn */
    PAUSE_MS = 100,
    SPARE_FILES = 256,
    KEPT_ALL = 16 << 20, /* what all keep in one direction, about */
    PIECE_LEAST = 4 << 10,
    PART_MS = 30000, /* for the last bytes of an answer */
    LINGER_MS = 2000,
    SHAKING_MAX = 2048, /* handshakes at once, of some 70 KiB each; beyond that the oldest gives way */
    OUT_MAX = SILT_VISITOR_PIECE + SILT_HEADS_MAX + 8192,
    IN_MAX = SILT_VISITOR_PIECE + SILT_HTTP_HEAD_MAX,
};

char silt_visitor_room[SILT_VISITOR_PIECE];

static void enter(struct silt_visitor *v, enum silt_visitor_state next);

size_t silt_visitor_piece(const struct silt_visitors *all)
{
    size_t share = KEPT_ALL / (all->count + 1);
    if (share > SILT_VISITOR_PIECE)
        return SILT_VISITOR_PIECE;
    return share > PIECE_LEAST ? share : PIECE_LEAST;
}

/* Bytes */

ssize_t silt_visitor_recv(struct silt_visitor *v, size_t room)
{
    if (v->veil != NULL)
        return silt_veil_recv(v->veil, silt_visitor_room, room);
    return recv(v->watch.fd, silt_visitor_room, room, MSG_DONTWAIT);
}

int silt_visitor_flush(struct silt_visitor *v)
{
    uint64_t ignored = 0;
    if (v->veil != NULL)
        return silt_veil_flush(v->veil);
    return silt_flow_flush(v->watch.fd, &v->out, &ignored);
}

int silt_visitor_send(struct silt_visitor *v, silt_slice bytes)
{
    uint64_t ignored = 0;
    if (v->veil != NULL)
        silt_buf_add(&v->out, bytes);
    if (v->veil != NULL ? silt_veil_flush(v->veil) < 0 : silt_flow_forward(v->watch.fd, &v->out, bytes, &ignored) < 0)
        return -1;
    return v->out.broken ? -1 : 0;
}

void silt_visitor_shut(struct silt_visitor *v)
{
    if (v->veil != NULL)
        silt_veil_shut(v->veil);
    else
        (void)shutdown(v->watch.fd, SHUT_WR);
}

/* For the socket to take. */
static bool waits(const struct silt_visitor *v)
{
    return v->out.len > 0 || (v->veil != NULL && silt_veil_waits(v->veil));
}

void silt_visitor_watch(struct silt_visitor *v, bool reads)
{
    if (reads)
        v->noisy = false;
    uint32_t events = reads || !v->noisy ? EPOLLIN : 0;
    if (waits(v))
        events |= EPOLLOUT;
    if (reads && v->veil != NULL)
        silt_veil_wants(v->veil);
    silt_loop_watch(v->all->loop, &v->watch, events != 0 ? events : (uint32_t)EPOLLET); /* still told of errors */
}

void silt_visitor_address(const struct sockaddr_in6 *from, char out[INET6_ADDRSTRLEN])
{
    const void *address = &from->sin6_addr;
    int family = from->sin6_family;
    if (family == AF_INET) {
        address = &((const struct sockaddr_in *)(const void *)from)->sin_addr;
    } else if (IN6_IS_ADDR_V4MAPPED(&from->sin6_addr)) {
        address = &from->sin6_addr.s6_addr[12];
        family = AF_INET;
    }
    if (inet_ntop(family, address, out, INET6_ADDRSTRLEN) == NULL)
        memcpy(out, "unknown", sizeof("unknown"));
}

/* Time */

void silt_visitor_deadline(struct silt_visitor *v, int64_t ms)
{
    v->deadline_ms = v->all->loop->now_ms + ms;
    if (v->timer.place == 0 || v->timer.at_ms > v->deadline_ms)
        silt_loop_after(v->all->loop, &v->timer, ms);
}

static void refuse(struct silt_visitor *v, int status)
{
    struct silt_page page = {.kind = SILT_PAGE_MALFORMED, .status = status, .close = true};
    silt_page_write(&v->out, &page);
    enter(v, SILT_VISITOR_PARTING);
}

static void on_late(struct silt_visitor *v)
{
    switch (v->state) {
    case SILT_VISITOR_HEAD:
        refuse(v, 408);
        break;
    case SILT_VISITOR_BUSY:
        silt_exchange_on_late(v);
        break;
    case SILT_VISITOR_HELLO:
    case SILT_VISITOR_IDLE:
    case SILT_VISITOR_LINGER:
        enter(v, SILT_VISITOR_CLOSED);
        break;
    case SILT_VISITOR_PARTING:
        silt_visitor_cut(v);
        break;
    case SILT_VISITOR_CLOSED:
        break;
    }
}

static void on_time(struct silt_timer *t)
{
    struct silt_visitor *v = silt_container_of(t, struct silt_visitor, timer);
    int64_t left = v->deadline_ms - v->all->loop->now_ms;
    if (left > 0) {
        silt_loop_after(v->all->loop, &v->timer, left);
    } else {
        on_late(v);
        silt_visitor_settle(v);
    }
}

/* States */

static void free_visitor(struct silt_grave *g)
{
    struct silt_visitor *v = silt_container_of(g, struct silt_visitor, grave);
    silt_buf_fini(&v->in);
    silt_buf_fini(&v->out);
    silt_veil_free(v->veil);
    free(v);
}

/* The handshake is over, in whichever way. */
static void leave_shaking(struct silt_visitor *v)
{
    if (silt_list_empty(&v->hello))
        return;
    silt_list_remove(&v->hello);
    v->all->shaking_count--;
}

static void close_visitor(struct silt_visitor *v)
{
    leave_shaking(v);
    struct silt_exchange *x = silt_take_ptr(v->exchange);
    if (x != NULL)
        silt_exchange_free(x);
    silt_loop_forget(v->all->loop, &v->watch);
    silt_close_fd(&v->watch.fd);
    silt_loop_cancel(v->all->loop, &v->timer);
    if (v->veil != NULL)
        silt_veil_stop(v->veil);
    silt_list_remove(&v->link);
    v->all->count--;
    silt_loop_bury(v->all->loop, &v->grave);
}

static void shrink(struct silt_buf *b)
{
    if (b->len == 0 && b->cap > 0)
        silt_buf_fini(b);
}

static void part(struct silt_visitor *v)
{
    v->last = true;
    silt_visitor_deadline(v, PART_MS);
    if (silt_visitor_flush(v) < 0)
        silt_visitor_cut(v);
    else if (v->out.len == 0)
        enter(v, v->halved ? SILT_VISITOR_CLOSED : SILT_VISITOR_LINGER);
    else
        silt_visitor_watch(v, false);
}

static void enter(struct silt_visitor *v, enum silt_visitor_state next)
{
    if (v->state == SILT_VISITOR_CLOSED)
        return;
    v->state = next;
    switch (next) {
    case SILT_VISITOR_IDLE:
        silt_visitor_deadline(v, v->all->settings.idle_timeout_ms);
        break;
    case SILT_VISITOR_HELLO:
    case SILT_VISITOR_HEAD:
        silt_visitor_deadline(v, v->all->settings.head_timeout_ms);
        break;
    case SILT_VISITOR_PARTING:
        part(v);
        break;
    case SILT_VISITOR_LINGER:
        silt_buf_fini(&v->in);
        silt_visitor_shut(v);
        silt_visitor_deadline(v, LINGER_MS);
        silt_visitor_watch(v, true);
        break;
    case SILT_VISITOR_CLOSED:
        close_visitor(v);
        break;
    case SILT_VISITOR_BUSY:
        break;
    }
}

void silt_visitor_cut(struct silt_visitor *v)
{
    if (v->state == SILT_VISITOR_CLOSED)
        return;
    silt_flow_reset_at_close(v->watch.fd);
    enter(v, SILT_VISITOR_CLOSED);
}

void silt_visitor_answered(struct silt_visitor *v)
{
    v->exchange = NULL;
    enter(v, v->last ? SILT_VISITOR_PARTING : SILT_VISITOR_IDLE);
}

/* The next request, when the answer before it has left. */
static bool begin(struct silt_visitor *v)
{
    if (v->in.len == 0 || v->out.len > 0 || v->stale)
        return false;
    enum silt_visitor_state before = v->state;
    v->state = SILT_VISITOR_BUSY;
    if (silt_exchange_begin(v, NULL, 0))
        return true;
    v->state = before;
    v->stale = true;
    if (before == SILT_VISITOR_IDLE)
        enter(v, SILT_VISITOR_HEAD);
    return false;
}

/* After everything that happened, once: what waits goes on. */
void silt_visitor_settle(struct silt_visitor *v)
{
    while (v->state == SILT_VISITOR_IDLE || v->state == SILT_VISITOR_HEAD) {
        if (v->out.len > 0 && silt_visitor_flush(v) < 0) {
            silt_visitor_cut(v);
            return;
        }
        if (!begin(v))
            break;
    }
    if (v->state == SILT_VISITOR_BUSY) {
        silt_exchange_settle(v);
    } else if (v->state <= SILT_VISITOR_HEAD) {
        shrink(&v->in);
        shrink(&v->out);
        if (v->veil != NULL)
            silt_veil_shrink(v->veil);
        silt_visitor_watch(v, !waits(v)); /* whoever does not read is not read either */
    }
}

/* Events */

/* Who is slow at it makes room for who is not. */
static void shake(struct silt_visitor *v)
{
    struct silt_visitors *all = v->all;
    if (all->shaking_count >= SHAKING_MAX)
        enter(silt_container_of(all->shaking.next, struct silt_visitor, hello), SILT_VISITOR_CLOSED);
    v->veil = silt_veil_new(v, all->identity);
    silt_list_append(&all->shaking, &v->hello);
    all->shaking_count++;
}

/* The first byte tells; it stays where it is. */
static void read_hello(struct silt_visitor *v)
{
    char first;
    ssize_t n = recv(v->watch.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || (first == SILT_TLS_FIRST && v->all->identity == NULL)) {
        enter(v, SILT_VISITOR_CLOSED);
    } else if (first == SILT_TLS_FIRST) {
        shake(v);
    } else {
        v->bare = true;
        enter(v, SILT_VISITOR_IDLE);
    }
}

static void read_head(struct silt_visitor *v)
{
    ssize_t n = silt_visitor_recv(v, silt_visitor_piece(v->all));
    int why = errno;
    if (v->state == SILT_VISITOR_HELLO && silt_veil_is_up(v->veil)) {
        leave_shaking(v);
        enter(v, SILT_VISITOR_IDLE);
    }
    if (n < 0 && (why == EAGAIN || why == EINTR))
        return;
    if (n < 0 && why == EPROTO) {
        enter(v, SILT_VISITOR_LINGER); /* it is told what is wrong */
    } else if (n < 0) {
        silt_visitor_cut(v);
    } else if (n == 0) {
        enter(v, SILT_VISITOR_CLOSED);
    } else {
        silt_buf_add(&v->in, (silt_slice){silt_visitor_room, (size_t)n});
        if (memchr(silt_visitor_room, '\n', (size_t)n) != NULL || v->in.len >= SILT_HTTP_HEAD_MAX)
            v->stale = false;
    }
}

static void read_rest(struct silt_visitor *v)
{
    ssize_t n = silt_visitor_recv(v, SILT_VISITOR_PIECE);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        enter(v, SILT_VISITOR_CLOSED);
}

static void on_readable(struct silt_visitor *v)
{
    if (v->state == SILT_VISITOR_HELLO && v->veil == NULL)
        read_hello(v);
    switch (v->state) {
    case SILT_VISITOR_HELLO:
        if (v->veil != NULL && waits(v))
            v->noisy = true;
        else if (v->veil != NULL)
            read_head(v);
        break;
    case SILT_VISITOR_IDLE:
    case SILT_VISITOR_HEAD:
        if (!waits(v))
            read_head(v);
        else
            v->noisy = true;
        break;
    case SILT_VISITOR_BUSY:
        silt_exchange_on_bytes(v);
        break;
    case SILT_VISITOR_LINGER:
        read_rest(v);
        break;
    case SILT_VISITOR_PARTING:
        v->noisy = true;
        silt_visitor_watch(v, false);
        break;
    case SILT_VISITOR_CLOSED:
        break;
    }
}

static void on_writable(struct silt_visitor *v)
{
    if (silt_visitor_flush(v) < 0)
        silt_visitor_cut(v);
    else if (v->out.len > 0)
        return;
    else if (v->state == SILT_VISITOR_PARTING)
        enter(v, SILT_VISITOR_PARTING);
    else if (v->state == SILT_VISITOR_BUSY)
        silt_exchange_on_written(v);
    else if (v->state == SILT_VISITOR_LINGER)
        silt_visitor_watch(v, true); /* the end of TLS is out */
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_visitor *v = silt_container_of(w, struct silt_visitor, watch);
    if ((events & EPOLLERR) != 0) {
        silt_visitor_cut(v);
        return;
    }
    if ((events & EPOLLOUT) != 0 && waits(v))
        on_writable(v);
    if (v->state != SILT_VISITOR_CLOSED && (events & (EPOLLIN | EPOLLHUP)) != 0)
        on_readable(v);
    silt_visitor_settle(v);
}

/* The beginning */

static struct silt_visitor *new_visitor(struct silt_visitors *all, int fd)
{
    struct silt_visitor *v = calloc(1, sizeof(*v));
    if (v == NULL)
        abort();
    v->all = all;
    v->watch = (struct silt_watch){.fd = fd, .on_ready = on_ready};
    v->timer.on_time = on_time;
    v->grave.free = free_visitor;
    silt_buf_init(&v->in, IN_MAX);
    silt_buf_init(&v->out, OUT_MAX);
    silt_list_init(&v->link);
    silt_list_init(&v->hello);
    silt_list_append(&all->list, &v->link);
    all->count++;
    silt_flow_keep_alive(fd);
    enter(v, SILT_VISITOR_IDLE);
    return v;
}

static void on_pause_over(struct silt_timer *t)
{
    struct silt_visitors *all = silt_container_of(t, struct silt_visitors, pause);
    silt_loop_watch(all->loop, &all->listener, EPOLLIN);
}

static void pause_accepting(struct silt_visitors *all)
{
    silt_loop_watch(all->loop, &all->listener, 0);
    silt_loop_after(all->loop, &all->pause, PAUSE_MS);
}

static void on_connection(struct silt_watch *w, uint32_t events)
{
    struct silt_visitors *all = silt_container_of(w, struct silt_visitors, listener);
    (void)events;
    for (int i = 0; i < BATCH; i++) {
        struct sockaddr_in6 from = {0};
        socklen_t len = sizeof(from);
        int fd = accept4(w->fd, (struct sockaddr *)(void *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            pause_accepting(all);
        if (fd < 0)
            return;
        if (all->count >= all->settings.connections_all) {
            silt_close_fd(&fd);
            continue;
        }
        struct silt_visitor *v = new_visitor(all, fd);
        v->from = from;
        if (all->veiled)
            enter(v, SILT_VISITOR_HELLO);
        silt_visitor_watch(v, true);
    }
}

void silt_visitors_init(struct silt_visitors *all, size_t files)
{
    size_t most = files > SPARE_FILES ? files - SPARE_FILES : 0;
    if (all->settings.connections_all > most / 4 * 3)
        all->settings.connections_all = most / 4 * 3;
    all->pause.on_time = on_pause_over;
    silt_list_init(&all->list);
    silt_list_init(&all->shaking);
    silt_pool_init(&all->pool, all->loop, most - all->settings.connections_all);
    silt_guesses_init(&all->guesses);
    all->routes->close_idle = silt_upstream_close_idle;
}

void silt_visitors_listen(struct silt_visitors *all, int fd)
{
    all->listener = (struct silt_watch){.fd = fd, .on_ready = on_connection};
    silt_loop_watch(all->loop, &all->listener, EPOLLIN);
}

void silt_visitors_hand(struct silt_visitors *all, int fd, silt_slice bytes, struct silt_route *route, uint32_t flags)
{
    if (all->count >= all->settings.connections_all) {
        silt_close_fd(&fd);
        return;
    }
    struct silt_visitor *v = new_visitor(all, fd);
    socklen_t len = sizeof(v->from);
    (void)getpeername(fd, (struct sockaddr *)(void *)&v->from, &len);
    v->last = true;
    silt_buf_add(&v->in, bytes);
    v->state = SILT_VISITOR_BUSY;
    if (v->in.broken || !silt_exchange_begin(v, route, flags)) {
        v->state = SILT_VISITOR_IDLE;
        silt_visitor_cut(v);
    } else {
        silt_visitor_settle(v);
    }
}
