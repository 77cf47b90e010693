/* SPDX-License-Identifier: Apache-2.0 */
#include "http/conn.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { LAST_WORDS_MS = 500 };
enum {
    ACCEPTS_MAX = 64,      /* per turn, so that existing connections get theirs */
    SPARES_MAX = 64,       /* exchanges kept for reuse */
    BODY_KEPT = 16 * 1024, /* body memory kept with a spare exchange */
    ARENA_MAX =
        192 * 1024 * 1024, /* per request: the tree and the decoded strings of a large body */
    REFUSAL_MAX = 16 * 1024,
    TELL_MS = 1000, /* between log lines about too many connections */
};

static struct silt_http_exchange *new_exchange(void)
{
    struct silt_http_exchange *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    silt_arena_init(&x->arena, ARENA_MAX);
    silt_buf_init(&x->body, 0);
    return x;
}

static void free_exchange(struct silt_http_exchange *x)
{
    silt_arena_fini(&x->arena);
    silt_buf_fini(&x->body);
    free(x);
}

/* The first spare exchange; it stays spare until the caller unlinks it. */
struct silt_http_exchange *silt_http_server_spare(struct silt_http_server *s)
{
    if (s->spare == NULL) {
        s->spare = new_exchange();
        s->spares = 1;
    }
    return s->spare;
}

/* Resets everything but the memory; the parser clears `head`. */
void silt_http_server_give_back(struct silt_http_exchange *x)
{
    struct silt_http_server *s = x->conn->server;
    s->body_bytes -= x->body_counted;
    if (s->spares >= SPARES_MAX) {
        free_exchange(x);
        return;
    }
    silt_arena_reset(&x->arena);
    silt_buf_clear(&x->body);
    if (x->body.cap > BODY_KEPT)
        silt_buf_fini(&x->body);
    struct silt_arena arena = x->arena;
    struct silt_buf body = x->body;
    memset(x, 0, offsetof(struct silt_http_exchange, head));
    x->arena = arena;
    x->body = body;
    x->next = s->spare;
    s->spare = x;
    s->spares++;
}

void silt_http_server_defer(struct silt_http_conn *c)
{
    struct silt_http_server *s = c->server;
    if (c->intake == SILT_HTTP_CLOSED || !silt_list_empty(&c->todo))
        return;
    silt_list_append(&s->todo, &c->todo);
    if (s->todo_timer.place == 0)
        silt_loop_after(s->loop, &s->todo_timer, 0);
}

static void on_todo(struct silt_timer *t)
{
    struct silt_http_server *s = silt_outer(t, struct silt_http_server, todo_timer);
    struct silt_http_conn *c;
    while ((c = silt_list_first(&s->todo, struct silt_http_conn, todo)) != NULL) {
        silt_list_remove(&c->todo);
        silt_http_conn_resume(c);
    }
    if (s->draining && s->count == 0 && s->on_closed != NULL) {
        void (*on_closed)(void *) = s->on_closed;
        s->on_closed = NULL;
        on_closed(s->on_closed_context);
    }
}

void silt_http_server_left(struct silt_http_conn *c)
{
    struct silt_http_server *s = c->server;
    if (--s->count == 0 && s->draining)
        silt_loop_after(s->loop, &s->todo_timer, 0);
}

size_t silt_http_server_connections(const struct silt_http_server *s)
{
    return s->count;
}

static void tell(struct silt_http_server *s, const char *why)
{
    if (s->told_ms != 0 && s->loop->now_ms - s->told_ms < TELL_MS)
        return;
    s->told_ms = s->loop->now_ms;
    silt_log(SILT_LOG_WARN, "http.refused", "connections=%zu why=%s", s->count, why);
}

/* Out of descriptors, the listening socket would stay readable forever: closes the reserve to
 * accept one connection and close it. */
static void on_no_descriptors(struct silt_http_server *s)
{
    tell(s, "descriptors");
    silt_close_fd(&s->reserve);
    int fd = accept4(s->watch.fd, NULL, NULL, SOCK_CLOEXEC);
    silt_close_fd(&fd);
    s->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_client(struct silt_watch *w, uint32_t events)
{
    struct silt_http_server *s = silt_outer(w, struct silt_http_server, watch);
    (void)events;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        silt_auto_fd fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && errno == ECONNABORTED)
            continue;
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE)
                on_no_descriptors(s);
            return;
        }
        if (s->count >= s->limits.connections) {
            tell(s, "limit");
            continue;
        }
        s->count++;
        (void)silt_http_conn_start(s, silt_take_fd(&fd));
    }
}

/* Connections inherit these options. A client whose machine vanished is noticed within a minute or
 * two. */
static void set_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 30}, {IPPROTO_TCP, TCP_KEEPINTVL, 10},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},
    };
    for (size_t i = 0; i < SILT_COUNT(options); i++) /* fails harmlessly on a unix socket */
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof(options[i].value));
}

int silt_http_server_open(struct silt_loop *loop, int listen_fd,
                          const struct silt_http_limits *limits,
                          const struct silt_http_hooks *hooks, struct silt_http_server **ret,
                          struct silt_error *e)
{
    silt_auto_fd fd = listen_fd;
    if (fd >= 0 && silt_fd_nonblock(fd, e) < 0)
        return -1;
    if (fd >= 0)
        set_options(fd);
    struct silt_http_server *s = calloc(1, sizeof(*s));
    if (s == NULL)
        abort();
    s->loop = loop;
    s->limits = *limits;
    s->hooks = *hooks;
    s->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    s->todo_timer.on_time = on_todo;
    silt_list_init(&s->conns);
    silt_list_init(&s->todo);
    silt_buf_init(&s->batch, SIZE_MAX / 2);
    silt_buf_init(&s->refusal, REFUSAL_MAX);
    s->watch = (struct silt_watch){.fd = silt_take_fd(&fd), .on_ready = on_client};
    if (s->watch.fd >= 0)
        silt_loop_watch(loop, &s->watch, EPOLLIN);
    *ret = s;
    return 0;
}

void silt_http_server_adopt(struct silt_http_server *s, int fd, void *tag)
{
    set_options(fd);
    if (s->draining || s->count >= s->limits.connections) {
        silt_close_fd(&fd);
        return;
    }
    s->count++;
    struct silt_http_conn *c = silt_http_conn_start(s, fd);
    c->tag = tag;
}

void silt_http_server_cut(struct silt_http_server *s, const void *tag)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    for (bool found = true; found;) { /* cutting one may end others */
        found = false;
        silt_list_each(it, &s->conns)
        {
            struct silt_http_conn *c = silt_outer(it, struct silt_http_conn, link);
            if (c->tag != tag)
                continue;
            silt_http_answer_flush(c);
            if (c->watch.fd >= 0)
                (void)setsockopt(c->watch.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
            silt_http_conn_lose(c);
            found = true;
            break;
        }
    }
}

static void stop_listening(struct silt_http_server *s)
{
    if (s->watch.fd < 0)
        return;
    silt_loop_forget(s->loop, &s->watch);
    silt_close_fd(&s->watch.fd);
}

static void cut_all(struct silt_http_server *s)
{
    while (!silt_list_empty(&s->conns)) /* cutting one may end others */
        silt_http_conn_lose(silt_list_first(&s->conns, struct silt_http_conn, link));
}

static void on_drained_late(struct silt_timer *t)
{
    cut_all(silt_outer(t, struct silt_http_server, drain_timer));
}

/* Requests without a response yet get a last one (409, see on_refusal), which is sent before the
 * rest is cut. */
static void on_drain_deadline(struct silt_timer *t)
{
    struct silt_http_server *s = silt_outer(t, struct silt_http_server, drain_timer);
    for (bool found = true; found;) { /* refusing one may end others */
        found = false;
        silt_list_each(it, &s->conns)
        {
            struct silt_http_conn *c = silt_outer(it, struct silt_http_conn, link);
            if (c->exchange == NULL || c->exchange->streaming)
                continue;
            silt_http_conn_refuse(c, SILT_HTTP_INTERRUPTED);
            silt_http_answer_flush(c);
            silt_http_conn_settle(c);
            found = true;
            break;
        }
    }
    s->drain_timer.on_time = on_drained_late;
    silt_loop_after(s->loop, &s->drain_timer, LAST_WORDS_MS);
}

void silt_http_server_drain(struct silt_http_server *s, int64_t deadline_ms,
                            void (*on_closed)(void *context), void *context)
{
    assert(!s->draining);
    stop_listening(s);
    s->draining = true;
    s->on_closed = on_closed;
    s->on_closed_context = context;
    s->drain_timer.on_time = on_drain_deadline;
    silt_loop_after(s->loop, &s->drain_timer, deadline_ms);
    silt_loop_after(s->loop, &s->todo_timer, 0);
    silt_list_each(it, &s->conns)
    {
        struct silt_http_conn *c = silt_outer(it, struct silt_http_conn, link);
        silt_http_conn_drain(c);
        silt_http_conn_settle(c);
    }
}

static void free_server(struct silt_grave *g)
{
    struct silt_http_server *s = silt_outer(g, struct silt_http_server, grave);
    while (s->spare != NULL) {
        struct silt_http_exchange *x = s->spare;
        s->spare = x->next;
        free_exchange(x);
    }
    silt_buf_fini(&s->batch);
    silt_buf_fini(&s->refusal);
    free(s);
}

void silt_http_server_free(struct silt_http_server *s)
{
    if (s == NULL)
        return;
    stop_listening(s);
    s->on_closed = NULL;
    cut_all(s);
    silt_loop_cancel(s->loop, &s->todo_timer);
    silt_loop_cancel(s->loop, &s->drain_timer);
    silt_close_fd(&s->reserve);
    s->grave.free = free_server;
    silt_loop_bury(s->loop, &s->grave);
}
