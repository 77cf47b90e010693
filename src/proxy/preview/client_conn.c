/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/client_conn.h"
#include "proxy/core/relay.h"
#include "proxy/preview/tls_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

enum {
    BATCH = 64, /* accepted per loop turn */
    PAUSE_MS = 100,
    SPARE_FILES = 256,
    KEPT_ALL = 16 << 20, /* buffered by all clients in one direction, about */
    PART_MS = 30000,     /* to send the end of the last response */
    LINGER_MS = 2000,
    SHAKING_MAX =
        2048, /* concurrent handshakes, about 70 KiB each; beyond that the oldest is dropped */
    OUT_MAX = SILT_CLIENT_CONN_PIECE + SILT_HEADER_REWRITE_MAX + 8192,
    IN_MAX = SILT_CLIENT_CONN_PIECE + SILT_HTTP_HEAD_MAX,
};

static char piece[SILT_CLIENT_CONN_PIECE]; /* scratch: valid until the next read */

static void enter(struct silt_client_conn *v, enum silt_client_conn_state next);

size_t silt_client_conn_piece(const struct silt_client_conns *all)
{
    return silt_relay_share(KEPT_ALL, all->count + 1, SILT_CLIENT_CONN_PIECE);
}

/* Bytes */

ssize_t silt_client_conn_recv(struct silt_client_conn *v, char *out, size_t room)
{
    if (v->veil != NULL)
        return silt_tls_conn_recv(v->veil, out, room);
    return recv(v->watch.fd, out, room, MSG_DONTWAIT);
}

bool silt_client_conn_is_chatty(const struct silt_client_conn *v)
{
    return v->veil != NULL && silt_tls_conn_is_chatty(v->veil);
}

int silt_client_conn_flush(struct silt_client_conn *v)
{
    uint64_t ignored = 0;
    if (v->veil != NULL)
        return silt_tls_conn_flush(v->veil);
    return silt_relay_flush(v->watch.fd, &v->out, &ignored);
}

int silt_client_conn_send(struct silt_client_conn *v, silt_slice bytes)
{
    uint64_t ignored = 0;
    if (v->veil != NULL)
        silt_buf_add(&v->out, bytes);
    if (v->veil != NULL ? silt_tls_conn_flush(v->veil) < 0
                        : silt_relay_forward(v->watch.fd, &v->out, bytes, &ignored) < 0)
        return -1;
    return v->out.broken ? -1 : 0;
}

void silt_client_conn_shut(struct silt_client_conn *v)
{
    if (v->veil != NULL)
        silt_tls_conn_shut(v->veil);
    else
        (void)shutdown(v->watch.fd, SHUT_WR);
}

/* Output is pending. */
static bool waits(const struct silt_client_conn *v)
{
    return v->out.len > 0 || (v->veil != NULL && silt_tls_conn_waits(v->veil));
}

void silt_client_conn_watch(struct silt_client_conn *v, bool reads)
{
    if (reads)
        v->noisy = false;
    uint32_t events = reads || !v->noisy ? EPOLLIN : 0;
    if (waits(v))
        events |= EPOLLOUT;
    if (reads && v->veil != NULL)
        silt_tls_conn_wants(v->veil);
    silt_loop_watch(v->all->loop, &v->watch,
                    events != 0 ? events : (uint32_t)EPOLLET); /* errors are still reported */
}

void silt_client_conn_address(const struct sockaddr_in6 *from, char out[INET6_ADDRSTRLEN])
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

void silt_client_conn_deadline(struct silt_client_conn *v, int64_t ms)
{
    v->deadline_ms = v->all->loop->now_ms + ms;
    if (v->timer.place == 0 || v->timer.at_ms > v->deadline_ms)
        silt_loop_after(v->all->loop, &v->timer, ms);
}

static void refuse(struct silt_client_conn *v, int status)
{
    struct silt_error_page page = {
        .kind = SILT_ERROR_PAGE_MALFORMED, .status = status, .close = true};
    silt_error_page_write(&v->out, &page);
    enter(v, SILT_CLIENT_CONN_PARTING);
}

static void on_late(struct silt_client_conn *v)
{
    switch (v->state) {
    case SILT_CLIENT_CONN_HEAD:
        refuse(v, 408);
        break;
    case SILT_CLIENT_CONN_BUSY:
        silt_proxied_request_on_late(v);
        break;
    case SILT_CLIENT_CONN_HELLO:
    case SILT_CLIENT_CONN_IDLE:
    case SILT_CLIENT_CONN_LINGER:
        enter(v, SILT_CLIENT_CONN_CLOSED);
        break;
    case SILT_CLIENT_CONN_PARTING:
        silt_client_conn_cut(v);
        break;
    case SILT_CLIENT_CONN_CLOSED:
        break;
    }
}

static void on_time(struct silt_timer *t)
{
    struct silt_client_conn *v = silt_outer(t, struct silt_client_conn, timer);
    int64_t left = v->deadline_ms - v->all->loop->now_ms;
    if (left > 0) {
        silt_loop_after(v->all->loop, &v->timer, left);
    } else {
        on_late(v);
        silt_client_conn_settle(v);
    }
}

/* States */

static void free_visitor(struct silt_grave *g)
{
    struct silt_client_conn *v = silt_outer(g, struct silt_client_conn, grave);
    silt_buf_fini(&v->in);
    silt_buf_fini(&v->out);
    silt_tls_conn_free(v->veil);
    free(v);
}

/* The handshake has ended, successfully or not. */
static void leave_shaking(struct silt_client_conn *v)
{
    if (silt_list_empty(&v->hello))
        return;
    silt_list_remove(&v->hello);
    v->all->shaking_count--;
}

static void close_visitor(struct silt_client_conn *v)
{
    leave_shaking(v);
    struct silt_proxied_request *x = silt_take_ptr(v->exchange);
    if (x != NULL)
        silt_proxied_request_free(x);
    silt_loop_forget(v->all->loop, &v->watch);
    silt_close_fd(&v->watch.fd);
    silt_loop_cancel(v->all->loop, &v->timer);
    if (v->veil != NULL)
        silt_tls_conn_stop(v->veil);
    silt_list_remove(&v->link);
    v->all->count--;
    silt_loop_bury(v->all->loop, &v->grave);
}

static void shrink(struct silt_buf *b)
{
    if (b->len == 0 && b->cap > 0)
        silt_buf_fini(b);
}

static void part(struct silt_client_conn *v)
{
    v->last = true;
    silt_client_conn_deadline(v, PART_MS);
    if (silt_client_conn_flush(v) < 0)
        silt_client_conn_cut(v);
    else if (v->out.len == 0)
        enter(v, v->halved ? SILT_CLIENT_CONN_CLOSED : SILT_CLIENT_CONN_LINGER);
    else
        silt_client_conn_watch(v, false);
}

static void enter(struct silt_client_conn *v, enum silt_client_conn_state next)
{
    if (v->state == SILT_CLIENT_CONN_CLOSED)
        return;
    v->state = next;
    switch (next) {
    case SILT_CLIENT_CONN_IDLE:
        silt_client_conn_deadline(v, v->all->settings.idle_timeout_ms);
        break;
    case SILT_CLIENT_CONN_HELLO:
    case SILT_CLIENT_CONN_HEAD:
        silt_client_conn_deadline(v, v->all->settings.head_timeout_ms);
        break;
    case SILT_CLIENT_CONN_PARTING:
        part(v);
        break;
    case SILT_CLIENT_CONN_LINGER:
        silt_buf_fini(&v->in);
        silt_client_conn_shut(v);
        silt_client_conn_deadline(v, LINGER_MS);
        silt_client_conn_watch(v, true);
        break;
    case SILT_CLIENT_CONN_CLOSED:
        close_visitor(v);
        break;
    case SILT_CLIENT_CONN_BUSY:
        break;
    }
}

void silt_client_conn_cut(struct silt_client_conn *v)
{
    if (v->state == SILT_CLIENT_CONN_CLOSED)
        return;
    silt_relay_reset_at_close(v->watch.fd);
    enter(v, SILT_CLIENT_CONN_CLOSED);
}

void silt_client_conn_answered(struct silt_client_conn *v)
{
    v->exchange = NULL;
    enter(v, v->last ? SILT_CLIENT_CONN_PARTING : SILT_CLIENT_CONN_IDLE);
}

/* Starts the next request once the previous response is sent. */
static bool begin(struct silt_client_conn *v)
{
    if (v->in.len == 0 || v->out.len > 0 || v->stale)
        return false;
    enum silt_client_conn_state before = v->state;
    v->state = SILT_CLIENT_CONN_BUSY;
    if (silt_proxied_request_begin(v, NULL, 0))
        return true;
    v->state = before;
    v->stale = true;
    if (before == SILT_CLIENT_CONN_IDLE)
        enter(v, SILT_CLIENT_CONN_HEAD);
    return false;
}

/* Call once after any event: continues whatever was waiting. */
void silt_client_conn_settle(struct silt_client_conn *v)
{
    while (v->state == SILT_CLIENT_CONN_IDLE || v->state == SILT_CLIENT_CONN_HEAD) {
        if (v->out.len > 0 && silt_client_conn_flush(v) < 0) {
            silt_client_conn_cut(v);
            return;
        }
        if (!begin(v))
            break;
    }
    if (v->state == SILT_CLIENT_CONN_BUSY) {
        silt_proxied_request_settle(v);
    } else if (v->state <= SILT_CLIENT_CONN_HEAD) {
        shrink(&v->in);
        shrink(&v->out);
        if (v->veil != NULL)
            silt_tls_conn_shrink(v->veil);
        silt_client_conn_watch(v, !waits(v)); /* a client that does not read is not read from */
    }
}

/* Events */

/* Too many handshakes: drop the oldest. */
static void shake(struct silt_client_conn *v)
{
    struct silt_client_conns *all = v->all;
    if (all->shaking_count >= SHAKING_MAX)
        enter(silt_outer(all->shaking.next, struct silt_client_conn, hello),
              SILT_CLIENT_CONN_CLOSED);
    v->veil = silt_tls_conn_new(v, all->identity);
    silt_list_append(&all->shaking, &v->hello);
    all->shaking_count++;
}

/* Peeks at the first byte: TLS or plain HTTP? */
static void read_hello(struct silt_client_conn *v)
{
    char first;
    ssize_t n = recv(v->watch.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || (first == SILT_TLS_FIRST && v->all->identity == NULL)) {
        enter(v, SILT_CLIENT_CONN_CLOSED);
    } else if (first == SILT_TLS_FIRST) {
        shake(v);
    } else {
        v->bare = true;
        enter(v, SILT_CLIENT_CONN_IDLE);
    }
}

static void read_head(struct silt_client_conn *v)
{
    ssize_t n = silt_client_conn_recv(v, piece, silt_client_conn_piece(v->all));
    int why = errno;
    if (v->state == SILT_CLIENT_CONN_HELLO && silt_tls_conn_is_up(v->veil)) {
        leave_shaking(v);
        enter(v, SILT_CLIENT_CONN_IDLE);
    }
    if (n < 0 && (why == EAGAIN || why == EINTR))
        return;
    if (n < 0 && why == EPROTO) {
        enter(v, SILT_CLIENT_CONN_LINGER); /* the TLS alert still goes out */
    } else if (n < 0) {
        silt_client_conn_cut(v);
    } else if (n == 0) {
        enter(v, SILT_CLIENT_CONN_CLOSED);
    } else {
        silt_buf_add(&v->in, (silt_slice){piece, (size_t)n});
        if (memchr(piece, '\n', (size_t)n) != NULL || v->in.len >= SILT_HTTP_HEAD_MAX)
            v->stale = false;
    }
}

static void read_rest(struct silt_client_conn *v)
{
    ssize_t n = silt_client_conn_recv(v, piece, sizeof(piece));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        enter(v, SILT_CLIENT_CONN_CLOSED);
}

static void on_readable(struct silt_client_conn *v)
{
    if (v->state == SILT_CLIENT_CONN_HELLO && v->veil == NULL)
        read_hello(v);
    switch (v->state) {
    case SILT_CLIENT_CONN_HELLO:
        if (v->veil != NULL && waits(v))
            v->noisy = true;
        else if (v->veil != NULL)
            read_head(v);
        break;
    case SILT_CLIENT_CONN_IDLE:
    case SILT_CLIENT_CONN_HEAD:
        if (!waits(v))
            read_head(v);
        else
            v->noisy = true;
        break;
    case SILT_CLIENT_CONN_BUSY:
        silt_proxied_request_on_bytes(v);
        break;
    case SILT_CLIENT_CONN_LINGER:
        read_rest(v);
        break;
    case SILT_CLIENT_CONN_PARTING:
        v->noisy = true;
        silt_client_conn_watch(v, false);
        break;
    case SILT_CLIENT_CONN_CLOSED:
        break;
    }
}

static void on_writable(struct silt_client_conn *v)
{
    if (silt_client_conn_flush(v) < 0)
        silt_client_conn_cut(v);
    else if (v->out.len > 0)
        return;
    else if (v->state == SILT_CLIENT_CONN_PARTING)
        enter(v, SILT_CLIENT_CONN_PARTING);
    else if (v->state == SILT_CLIENT_CONN_BUSY)
        silt_proxied_request_on_written(v);
    else if (v->state == SILT_CLIENT_CONN_LINGER)
        silt_client_conn_watch(v, true); /* close_notify is sent */
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_client_conn *v = silt_outer(w, struct silt_client_conn, watch);
    if ((events & EPOLLERR) != 0) {
        silt_client_conn_cut(v);
        return;
    }
    if ((events & EPOLLOUT) != 0 && waits(v))
        on_writable(v);
    if (v->state != SILT_CLIENT_CONN_CLOSED && (events & (EPOLLIN | EPOLLHUP)) != 0)
        on_readable(v);
    silt_client_conn_settle(v);
}

/* The beginning */

static struct silt_client_conn *new_visitor(struct silt_client_conns *all, int fd)
{
    struct silt_client_conn *v = calloc(1, sizeof(*v));
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
    silt_relay_keep_alive(fd);
    enter(v, SILT_CLIENT_CONN_IDLE);
    return v;
}

static void on_pause_over(struct silt_timer *t)
{
    struct silt_client_conns *all = silt_outer(t, struct silt_client_conns, pause);
    silt_loop_watch(all->loop, &all->listener, EPOLLIN);
}

static void pause_accepting(struct silt_client_conns *all)
{
    silt_loop_watch(all->loop, &all->listener, 0);
    silt_loop_after(all->loop, &all->pause, PAUSE_MS);
}

static void on_connection(struct silt_watch *w, uint32_t events)
{
    struct silt_client_conns *all = silt_outer(w, struct silt_client_conns, listener);
    (void)events;
    for (int i = 0; i < BATCH; i++) {
        struct sockaddr_in6 from = {0};
        socklen_t len = sizeof(from);
        int fd =
            accept4(w->fd, (struct sockaddr *)(void *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            pause_accepting(all);
        if (fd < 0)
            return;
        if (all->count >= all->settings.connections_all) {
            silt_close_fd(&fd);
            continue;
        }
        struct silt_client_conn *v = new_visitor(all, fd);
        v->from = from;
        if (all->veiled)
            enter(v, SILT_CLIENT_CONN_HELLO);
        silt_client_conn_watch(v, true);
    }
}

void silt_client_conns_init(struct silt_client_conns *all, size_t files)
{
    size_t most = files > SPARE_FILES ? files - SPARE_FILES : 0;
    if (all->settings.connections_all > most / 4 * 3)
        all->settings.connections_all = most / 4 * 3;
    all->pause.on_time = on_pause_over;
    silt_list_init(&all->list);
    silt_list_init(&all->shaking);
    silt_pool_init(&all->pool, all->loop, most - all->settings.connections_all);
    silt_guess_limit_init(&all->guesses);
    all->routes->close_idle = silt_upstream_close_idle;
}

void silt_client_conns_listen(struct silt_client_conns *all, int fd)
{
    all->listener = (struct silt_watch){.fd = fd, .on_ready = on_connection};
    silt_loop_watch(all->loop, &all->listener, EPOLLIN);
}

void silt_client_conns_hand(struct silt_client_conns *all, int fd, silt_slice bytes,
                            struct silt_route *route, uint32_t flags)
{
    if (all->count >= all->settings.connections_all) {
        silt_close_fd(&fd);
        return;
    }
    struct silt_client_conn *v = new_visitor(all, fd);
    socklen_t len = sizeof(v->from);
    (void)getpeername(fd, (struct sockaddr *)(void *)&v->from, &len);
    v->last = true;
    silt_buf_add(&v->in, bytes);
    v->state = SILT_CLIENT_CONN_BUSY;
    if (v->in.broken || !silt_proxied_request_begin(v, route, flags)) {
        v->state = SILT_CLIENT_CONN_IDLE;
        silt_client_conn_cut(v);
    } else {
        silt_client_conn_settle(v);
    }
}
