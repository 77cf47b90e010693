/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to the listening socket of a sidecar. The peer must be root or the user who created
 * the container. The first bytes are peeked at: CONNECT is answered here, anything else is HTTP for
 * the sidecar itself. If the port is ours (a control port), the connection goes to the wire API;
 * otherwise silt-proxy tunnels it to a socket inside the sandbox.
 *
 *   LOOKING --CONNECT--> DIALLING --socket--> (silt-proxy's)
 *       \--other--> (the server's)  ^   \--refused--> PAUSING */
#include "api/engine/engine.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sock_diag.h"
#include "sandbox/preview/preview_channel.h"
#include "sandbox/core/sandbox.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    ENTRIES_MAX = 4096,
    STRANGERS_MAX = 64, /* rejected peers have a limit of their own and take no place of others */
    ACCEPTS_MAX = 64,
    HEAD_MAX = 8192,
    HEAD_MS = 15000,
    STRANGER_MS = 2000, /* for the head of a peer that is rejected anyway */
    BREATH_MS = 100,    /* pause when out of descriptors */
    PAUSE_MS = 5,
    PAUSE_MAX_MS = 40,
    LINGER_MS = 2000,
};

struct door {
    struct silt_engine *engine;       /* borrowed */
    struct silt_container *container; /* borrowed; a sidecar */
    struct silt_watch watch;
    struct silt_timer breath; /* out of descriptors: the socket is not watched */
    struct silt_link link;
    struct silt_grave grave;
};

enum state { LOOKING, DIALLING, PAUSING, PARTING, OVER };

struct entry {
    struct silt_engine *engine;     /* borrowed */
    struct silt_container *sidecar; /* borrowed; NULL: removed */
    struct silt_container *behind;  /* borrowed; DIALLING and PAUSING */
    enum state state;
    bool allowed;
    bool asked; /* waiting for silt-priv's response */
    uint16_t port;
    int64_t until_ms, pause_ms;
    struct silt_watch watch;
    struct silt_timer timer;
    struct silt_link link;
    struct silt_grave grave;
};

static struct silt_loop *loop_of(const struct entry *x)
{
    return x->engine->api->loop;
}

static void free_entry(struct silt_grave *g)
{
    free(silt_outer(g, struct entry, grave));
}

static void leave(struct entry *x)
{
    x->state = OVER;
    silt_loop_forget(loop_of(x), &x->watch);
    silt_loop_cancel(loop_of(x), &x->timer);
    silt_close_fd(&x->watch.fd);
    silt_list_remove(&x->link);
    x->engine->entry_count--;
    x->engine->strangers -= !x->allowed;
    if (!x->asked)
        silt_loop_bury(loop_of(x), &x->grave);
}

/* Hands the connection over; the caller owns it from now on. */
static int give_away(struct entry *x)
{
    silt_loop_forget(loop_of(x), &x->watch);
    int fd = silt_take_fd(&x->watch.fd);
    leave(x);
    return fd;
}

static bool say(struct entry *x, const char *text)
{
    size_t len = strlen(text);
    return send(x->watch.fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

/* Closing with unread bytes sends a reset, which could discard the response. */
static void part(struct entry *x, int status, const char *reason, const char *message)
{
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: "
                   "%zu\r\nConnection: close\r\n\r\n"
                   "{\"message\":\"%s\"}",
                   status, reason, strlen(message) + 14, message);
    (void)say(x, text);
    (void)shutdown(x->watch.fd, SHUT_WR);
    x->state = PARTING;
    x->behind = NULL;
    silt_loop_watch(loop_of(x), &x->watch, EPOLLIN);
    silt_loop_after(loop_of(x), &x->timer, LINGER_MS);
}

static void refuse(struct entry *x, const char *message)
{
    part(x, 400, "Bad Request", message);
}

/* Tunnels */

static void dial(struct entry *x);

static void on_socket(struct entry *x, int fd)
{
    struct silt_sandbox *s =
        silt_registry_find(x->engine->api->registry, silt_slice_of(x->behind->sandbox));
    struct silt_exposed_port *e =
        s != NULL && s->state == SILT_SANDBOX_RUNNING ? silt_exposed_port_direct(s, x->port) : NULL;
    struct silt_preview_visitor v = {.said = fd, .flags = SILT_PREVIEW_TUNNEL};
    struct silt_error ignored;
    if (e == NULL) {
        silt_close_fd(&fd);
        refuse(x, "the container has too many open ports");
        return;
    }
    if (!say(x, "HTTP/1.1 200 OK\r\n\r\n")) {
        silt_close_fd(&fd);
        leave(x);
        return;
    }
    v.connection = give_away(x);
    (void)silt_preview_hand_over(e, v, &ignored);
}

static void rest(struct entry *x)
{
    x->state = PAUSING;
    x->pause_ms = x->pause_ms * 2 < PAUSE_MAX_MS ? x->pause_ms * 2 : PAUSE_MAX_MS;
    silt_loop_after(loop_of(x), &x->timer, x->pause_ms);
}

static void on_refused(struct entry *x)
{
    if (silt_clock_ms() >= x->until_ms)
        refuse(x, "the container is not listening on this port");
    else
        rest(x);
}

static void on_dialled(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct entry *x = context;
    int fd = nfds > 0 ? fds[0] : -1;
    x->asked = false;
    if (x->state == OVER)
        silt_loop_bury(loop_of(x), &x->grave);
    if (x->state != DIALLING) {
        silt_close_fd(&fd);
        return;
    }
    if (a->ok && fd >= 0)
        on_socket(x, fd);
    else if (!a->ok && a->body.error.code == SILT_INTERRUPTED)
        dial(x);
    else
        on_refused(x);
}

static void dial(struct entry *x)
{
    struct silt_registry *r = x->engine->api->registry;
    struct silt_sandbox *s = silt_registry_find(r, silt_slice_of(x->behind->sandbox));
    if (s != NULL && s->state == SILT_SANDBOX_STARTING) {
        rest(x); /* siltd has just started and its agent has not reported yet; that wait has its own
                    deadline */
        return;
    }
    if (s == NULL || s->state != SILT_SANDBOX_RUNNING) {
        refuse(x, "the container is not running");
        return;
    }
    struct silt_priv_request q = {.op = SILT_PRIV_DIAL, .slot = s->row.slot, .body.port = x->port};
    x->state = DIALLING;
    x->asked = true;
    silt_loop_cancel(loop_of(x), &x->timer);
    silt_priv_ask(r->priv, &q, NULL, 0, on_dialled, x);
}

/* Requests */

static void connect_to(struct entry *x, uint16_t port)
{
    struct silt_container *c = silt_container_behind(x->sidecar);
    if (c == NULL) {
        refuse(x, "no container is running");
        return;
    }
    if (c->builtin && port == SILT_CONTROL_PORT) {
        silt_container_on_asked(c);
        if (!say(x, "HTTP/1.1 200 OK\r\n\r\n"))
            leave(x);
        else
            silt_http_server_adopt(x->engine->wire, give_away(x), c);
        return;
    }
    x->behind = c;
    x->port = port;
    x->pause_ms = PAUSE_MS;
    x->until_ms = c->running_ms + c->all->hold_ms;
    dial(x);
}

/* The port of "127.0.0.1:3000"; 0 if it is not one of ours. */
static uint16_t port_of(silt_slice address)
{
    silt_slice port = address, host;
    uint64_t number;
    struct silt_error e;
    if (!silt_slice_split(&port, ':', &host)
        || (!silt_slice_eq(host, SILT_LIT("127.0.0.1")) && !silt_slice_eq(host, SILT_LIT("0.0.0.0"))
            && !silt_slice_ieq(host, SILT_LIT("localhost")))
        || silt_slice_to_u64(port, 1, UINT16_MAX, &number, &e) < 0)
        return 0;
    return (uint16_t)number;
}

/* Empty if there is none, or more than one. */
static silt_slice address_in(const struct silt_http_head *h)
{
    silt_slice address = {NULL, 0};
    size_t count = 0;
    for (size_t i = 0; i < h->count; i++)
        if (silt_slice_ieq(h->fields[i].name, SILT_LIT("x-dst-addr"))) {
            address = h->fields[i].value;
            count++;
        }
    return count == 1 ? address : (silt_slice){NULL, 0};
}

static void on_connect(struct entry *x, const struct silt_http_head *h)
{
    silt_slice address = address_in(h);
    uint16_t port = address.len > 0 ? port_of(address) : 0;
    if (port == 0)
        refuse(x, "X-Dst-Addr is missing or not an address of the container");
    else
        connect_to(x, port);
}

/* How many bytes must be readable before epoll wakes us. */
static void set_low_mark(struct entry *x, int bytes)
{
    (void)setsockopt(x->watch.fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

static void pass_to_sidecar(struct entry *x)
{
    struct silt_container *sidecar = x->sidecar;
    set_low_mark(x, 1);
    silt_http_server_adopt(x->engine->sidecar, give_away(x), sidecar);
}

/* `len`: the size of the head, or silt_http_parse's error. */
static void on_head(struct entry *x, char *bytes, const struct silt_http_head *h, int len)
{
    set_low_mark(x, 1);
    if (!x->allowed)
        part(x, 403, "Forbidden", "this container was made by another user");
    else if (len <= 0)
        refuse(x, len == 0 ? "the head is too long" : "the head is malformed");
    else if (recv(x->watch.fd, bytes, (size_t)len, MSG_DONTWAIT) != len)
        leave(x);
    else {
        silt_loop_watch(loop_of(x), &x->watch, 0); /* what follows is for the other end */
        on_connect(x, h);
    }
}

static void look(struct entry *x)
{
    static const char verb[] = "CONNECT ";
    static struct silt_http_head head;
    char bytes[HEAD_MAX];
    ssize_t n = recv(x->watch.fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || x->sidecar == NULL) {
        leave(x);
        return;
    }
    size_t seen = (size_t)n < sizeof(verb) - 1 ? (size_t)n : sizeof(verb) - 1;
    if (memcmp(bytes, verb, seen) != 0 && x->allowed) {
        pass_to_sidecar(x);
        return;
    }
    int len = silt_http_parse(&head, (silt_slice){bytes, (size_t)n}, SILT_HTTP_CONNECT);
    if (len == 0 && (size_t)n < sizeof(bytes))
        set_low_mark(x, (int)n + 1); /* otherwise the bytes already there would keep waking us */
    else
        on_head(x, bytes, &head, len);
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct entry *x = silt_outer(w, struct entry, watch);
    char junk[4096];
    if (x->state == OVER)
        return;
    if ((events & (EPOLLERR | EPOLLHUP)) != 0)
        leave(x);
    else if (x->state == LOOKING) {
        look(x);
        if (x->state == LOOKING && (events & EPOLLRDHUP) != 0)
            leave(x); /* the rest will never come */
    } else if (x->state == PARTING && recv(w->fd, junk, sizeof(junk), MSG_DONTWAIT) <= 0)
        leave(x);
}

static void on_time(struct silt_timer *t)
{
    struct entry *x = silt_outer(t, struct entry, timer);
    if (x->state == PAUSING)
        dial(x);
    else
        leave(x);
}

static void let_in(struct door *d, int fd)
{
    struct silt_engine *g = d->engine;
    uint32_t uid;
    bool allowed =
        silt_sock_diag_peer(g->all->diag, fd, &uid) && (uid == 0 || uid == d->container->row.uid);
    if (!allowed && g->strangers >= STRANGERS_MAX) {
        silt_close_fd(&fd);
        return;
    }
    struct entry *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    *x = (struct entry){.engine = g,
                        .sidecar = d->container,
                        .allowed = allowed,
                        .watch = {.fd = fd, .on_ready = on_ready},
                        .timer = {.on_time = on_time},
                        .grave = {.free = free_entry}};
    silt_list_init(&x->link);
    silt_list_append(&g->entries, &x->link);
    g->entry_count++;
    g->strangers += !allowed;
    silt_loop_watch(loop_of(x), &x->watch, EPOLLIN | EPOLLRDHUP);
    silt_loop_after(loop_of(x), &x->timer, allowed ? HEAD_MS : STRANGER_MS);
}

static void on_breath(struct silt_timer *t)
{
    struct door *d = silt_outer(t, struct door, breath);
    silt_loop_watch(d->engine->api->loop, &d->watch, EPOLLIN);
}

/* Waiting connections would keep waking us. */
static void hold_breath(struct door *d)
{
    silt_loop_watch(d->engine->api->loop, &d->watch, 0);
    silt_loop_after(d->engine->api->loop, &d->breath, BREATH_MS);
}

static void on_client(struct silt_watch *w, uint32_t events)
{
    struct door *d = silt_outer(w, struct door, watch);
    (void)events;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                hold_breath(d);
            return;
        }
        if (d->engine->entry_count >= ENTRIES_MAX)
            silt_close_fd(&fd);
        else
            let_in(d, fd);
    }
}

/* Listening sockets */

static void free_door(struct silt_grave *g)
{
    free(silt_outer(g, struct door, grave));
}

static void close_door(struct door *d)
{
    struct silt_loop *loop = d->engine->api->loop;
    silt_loop_forget(loop, &d->watch);
    silt_loop_cancel(loop, &d->breath);
    silt_close_fd(&d->watch.fd);
    silt_list_remove(&d->link);
    d->container->listen = -1;
    silt_loop_bury(loop, &d->grave);
}

static void close_doors(struct silt_engine *g, const struct silt_container *c)
{
    silt_list_each(it, &g->doors)
    {
        struct door *d = silt_outer(it, struct door, link);
        if (d->container == c)
            close_door(d);
    }
}

void silt_ingress_listen(void *context, struct silt_container *c, int fd)
{
    struct silt_engine *g = context;
    struct silt_error e;
    struct door *d = calloc(1, sizeof(*d));
    if (d == NULL)
        abort();
    *d = (struct door){.engine = g,
                       .container = c,
                       .watch = {.fd = fd, .on_ready = on_client},
                       .breath = {.on_time = on_breath},
                       .grave = {.free = free_door}};
    (void)silt_fd_nonblock(fd, &e);
    c->listen = fd;
    silt_list_init(&d->link);
    silt_list_append(&g->doors, &d->link);
    if (g->sidecar
        != NULL) /* otherwise silt_ingress_open does it: no connection could be served yet */
        silt_loop_watch(g->api->loop, &d->watch, EPOLLIN);
}

void silt_ingress_open(struct silt_engine *g)
{
    silt_list_each(it, &g->doors)
        silt_loop_watch(g->api->loop, &silt_outer(it, struct door, link)->watch, EPOLLIN);
}

void silt_ingress_cut(void *context, struct silt_container *c)
{
    struct silt_engine *g = context;
    silt_list_each(it, &g->entries)
    {
        struct entry *x = silt_outer(it, struct entry, link);
        if (x->behind == c)
            refuse(x, "the container has ended");
        if (x->sidecar == c)
            leave(x);
    }
    if (g->wire != NULL)
        silt_http_server_cut(g->wire, c);
}

void silt_ingress_unlisten(void *context, struct silt_container *c)
{
    struct silt_engine *g = context;
    struct silt_super_note note = {.type = SILT_SUPER_UNLISTEN, .number = c->row.number};
    close_doors(g, c);
    (void)silt_registry_tell_super(g->api->registry, &note, NULL, 0);
    if (g->sidecar != NULL)
        silt_http_server_cut(g->sidecar, c);
}

void silt_ingress_free(struct silt_engine *g)
{
    while (!silt_list_empty(&g->entries))
        leave(silt_list_first(&g->entries, struct entry, link));
    while (!silt_list_empty(&g->doors))
        close_door(silt_list_first(&g->doors, struct door, link));
}
