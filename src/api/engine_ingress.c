/* SPDX-License-Identifier: Apache-2.0 */
/* Ingress: connections to the listening socket of a sidecar. Each must be of root or of who made the container. What it says first is looked
 * at without being taken: CONNECT is answered here, everything else is HTTP for the sidecar itself. Where a port is ours (a control port)
 * the connection becomes one of the wire API; else it is tunnelled by silt-proxy, together with a socket inside.
 *
 *   LOOKING --CONNECT--> DIALLING --socket--> (silt-proxy's)
 *       \--other--> (the server's)  ^   \--refused--> PAUSING      */
#include "api/engine.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/diag.h"
#include "sandbox/preview.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    ENTRIES_MAX = 4096,
    STRANGERS_MAX = 64, /* of those: whoever is turned away takes no place of others */
    ACCEPTS_MAX = 64,
    HEAD_MAX = 8192,
    HEAD_MS = 15000,
    STRANGER_MS = 2000, /* for a head that is refused anyway */
    BREATH_MS = 100,    /* without descriptors */
    PAUSE_MS = 5,
    PAUSE_MAX_MS = 40,
    LINGER_MS = 2000,
};

struct door {
    struct silt_engine *engine;       /* borrowed */
    struct silt_container *container; /* borrowed; a sidecar */
    struct silt_watch watch;
    struct silt_timer breath; /* no descriptor is free: it is not looked at */
    struct silt_link link;
    struct silt_grave grave;
};

enum state { LOOKING, DIALLING, PAUSING, PARTING, OVER };

struct entry {
    struct silt_engine *engine;     /* borrowed */
    struct silt_container *sidecar; /* borrowed; NULL: it is gone */
    struct silt_container *behind;  /* borrowed; DIALLING and PAUSING */
    enum state state;
    bool allowed;
    bool asked; /* silt-priv has not answered */
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
    free(silt_container_of(g, struct entry, grave));
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

/* The connection is somebody else's from now on. */
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

/* Closing on unread bytes resets, and the answer could be lost with it. */
static void part(struct entry *x, int status, const char *reason, const char *message)
{
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n"
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
    struct silt_sandbox *s = silt_registry_find(x->engine->api->registry, silt_slice_of(x->behind->sandbox));
    struct silt_entrance *e = s != NULL && s->state == SILT_SANDBOX_RUNNING ? silt_entrance_direct(s, x->port) : NULL;
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
        rest(x); /* siltd is new, and has not heard of its agent yet: that has a deadline of its own */
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

/* What it wants */

static void connect_to(struct entry *x, uint16_t port)
{
    struct silt_container *c = silt_container_behind(x->sidecar);
    if (c == NULL) {
        refuse(x, "no container is running");
        return;
    }
    if (c->builtin && port == SILT_CONTROL_PORT) {
        if (!say(x, "HTTP/1.1 200 OK\r\n\r\n"))
            leave(x);
        else
            silt_http_server_adopt(x->engine->wire, give_away(x), c);
        return;
    }
    x->behind = c;
    x->port = port;
    x->pause_ms = PAUSE_MS;
    int64_t age_ms = silt_clock_wall_ms() - c->row.started_ms; /* below 0 when the clock was set back */
    x->until_ms = silt_clock_ms() + c->all->hold_ms - (age_ms > 0 ? age_ms : 0);
    dial(x);
}

/* Of "127.0.0.1:3000"; 0: it is none of ours. */
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

static void on_connect(struct entry *x, silt_slice head)
{
    silt_slice line, name;
    silt_slice address = {NULL, 0};
    (void)silt_slice_split(&head, '\n', &line);
    while (silt_slice_split(&head, '\n', &line)) {
        if (silt_slice_split(&line, ':', &name) && silt_slice_ieq(name, SILT_LIT("x-dst-addr")))
            address = silt_slice_trim(line);
    }
    while (address.len > 0 && address.data[address.len - 1] == '\r')
        address.len--;
    uint16_t port = address.len > 0 ? port_of(address) : 0;
    if (!x->allowed)
        part(x, 403, "Forbidden", "this container was made by another user");
    else if (port == 0)
        refuse(x, "X-Dst-Addr is missing or not an address of the container");
    else
        connect_to(x, port);
}

static void look(struct entry *x)
{
    static const char verb[] = "CONNECT ";
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
        struct silt_container *sidecar = x->sidecar;
        int one = 1;
        (void)setsockopt(x->watch.fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
        silt_http_server_adopt(x->engine->sidecar, give_away(x), sidecar);
        return;
    }
    const char *end = memmem(bytes, (size_t)n, "\r\n\r\n", 4);
    if (end == NULL && (size_t)n < sizeof(bytes)) {
        int more = (int)n + 1; /* else what is there would wake us again and again */
        (void)setsockopt(x->watch.fd, SOL_SOCKET, SO_RCVLOWAT, &more, sizeof(more));
        return;
    }
    int one = 1;
    (void)setsockopt(x->watch.fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
    if (end == NULL) {
        refuse(x, "the head is too long");
        return;
    }
    size_t len = (size_t)(end - bytes) + 4;
    if (recv(x->watch.fd, bytes, len, MSG_DONTWAIT) != (ssize_t)len) {
        leave(x);
        return;
    }
    silt_loop_watch(loop_of(x), &x->watch, 0); /* what follows is for whoever is on the other side */
    on_connect(x, (silt_slice){bytes, len});
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct entry *x = silt_container_of(w, struct entry, watch);
    char junk[4096];
    if (x->state == OVER)
        return;
    if ((events & (EPOLLERR | EPOLLHUP)) != 0)
        leave(x);
    else if (x->state == LOOKING) {
        look(x);
        if (x->state == LOOKING && (events & EPOLLRDHUP) != 0)
            leave(x); /* the rest will not come */
    } else if (x->state == PARTING && recv(w->fd, junk, sizeof(junk), MSG_DONTWAIT) <= 0)
        leave(x);
}

static void on_time(struct silt_timer *t)
{
    struct entry *x = silt_container_of(t, struct entry, timer);
    if (x->state == PAUSING)
        dial(x);
    else
        leave(x);
}

static void let_in(struct door *d, int fd)
{
    struct silt_engine *g = d->engine;
    uint32_t uid;
    bool allowed = silt_diag_peer(g->all->diag, fd, &uid) && (uid == 0 || uid == d->container->row.uid);
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
    struct door *d = silt_container_of(t, struct door, breath);
    silt_loop_watch(d->engine->api->loop, &d->watch, EPOLLIN);
}

/* Who waits there would wake us again and again. */
static void hold_breath(struct door *d)
{
    silt_loop_watch(d->engine->api->loop, &d->watch, 0);
    silt_loop_after(d->engine->api->loop, &d->breath, BREATH_MS);
}

static void on_client(struct silt_watch *w, uint32_t events)
{
    struct door *d = silt_container_of(w, struct door, watch);
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

/* Doors */

static void free_door(struct silt_grave *g)
{
    free(silt_container_of(g, struct door, grave));
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
        struct door *d = silt_container_of(it, struct door, link);
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
    *d = (struct door){
        .engine = g, .container = c, .watch = {.fd = fd, .on_ready = on_client}, .breath = {.on_time = on_breath}, .grave = {.free = free_door}};
    (void)silt_fd_nonblock(fd, &e);
    c->listen = fd;
    silt_list_init(&d->link);
    silt_list_append(&g->doors, &d->link);
    if (g->sidecar != NULL) /* else silt_ingress_open does: nobody could be served yet */
        silt_loop_watch(g->api->loop, &d->watch, EPOLLIN);
}

void silt_ingress_open(struct silt_engine *g)
{
    silt_list_each(it, &g->doors)
        silt_loop_watch(g->api->loop, &silt_container_of(it, struct door, link)->watch, EPOLLIN);
}

void silt_ingress_cut(void *context, struct silt_container *c)
{
    struct silt_engine *g = context;
    silt_list_each(it, &g->entries)
    {
        struct entry *x = silt_container_of(it, struct entry, link);
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
    silt_registry_tell_super(g->api->registry, &note);
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
