/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/captive.h"
#include "base/fd.h"
#include "base/log.h"
#include "proxy/flow.h"
#include "wire/priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    BATCH = 64, /* accepted in one turn */
    PAUSE_MS = 100,
    FEW = 16, /* connections of one sandbox in a crowd */
    SOCKETS_EACH = SILT_CAPTIVE_FAMILIES * SILT_CAPTIVE_SOCKET_MAX,
};

/* Where names lead that are answered for (names.c), and so nobody's private network. */
static const silt_prefix made_up[] = {{4, 32, {11, 0, 0, 1}}, {6, 128, {0xfd, [15] = 1}}};

/* The worker answers for every address of the internet, also for those that nobody has. */
static bool is_closed(const struct silt_captives *all, const silt_prefix *address)
{
    for (size_t i = 0; i < SILT_COUNT(made_up); i++)
        if (silt_prefix_covers(&made_up[i], address))
            return false;
    return silt_prefix_is_private(address, &all->links->open);
}

/* 0: it may be offered. */
static enum silt_egress_reason admit(const struct silt_captive *c, const silt_prefix *address)
{
    const struct silt_captives *all = c->all;
    size_t most = all->passages->most, sockets = all->count * SOCKETS_EACH / 2;
    struct silt_places places = {.most = most > sockets ? most - sockets : 0, .each = all->each, .few = FEW};
    if (is_closed(all, address))
        return SILT_REFUSED_CLOSED;
    if (c->port == 0)
        return SILT_REFUSED_NOBODY;
    bool room = silt_places_left(&places, all->offers + all->passages->count, c->link->counts.open);
    return room ? 0 : SILT_REFUSED_LIMIT;
}

/* Takes fd. Its own address is where the other side wanted to go. */
static void on_caller(struct silt_captive *c, int fd, const struct sockaddr_storage *from)
{
    struct silt_offer_caller caller = {.fd = fd, .from = *from};
    socklen_t len = sizeof(caller.to);
    if (getsockname(fd, (struct sockaddr *)&caller.to, &len) < 0) {
        silt_close_fd(&fd);
        return;
    }
    caller.address = silt_links_address(&caller.to);
    caller.port = silt_links_port(&caller.to);
    enum silt_egress_reason why = admit(c, &caller.address);
    if (why == 0) {
        silt_offer_begin(c, &caller);
        return;
    }
    struct silt_egress_refusal r = {.protocol = SILT_EGRESS_TCP, .reason = (uint8_t)why};
    silt_links_put(&r, &caller.address, caller.port);
    silt_links_refuse(c->all->links, c->link, &r);
    silt_flow_reset_at_close(fd);
    silt_close_fd(&fd);
}

static void watch_listeners(struct silt_captive *c, uint32_t events)
{
    for (size_t i = 0; i < SILT_COUNT(c->listeners); i++)
        if (c->listeners[i].watch.fd >= 0)
            silt_loop_watch(c->all->loop, &c->listeners[i].watch, events);
}

static void on_pause_over(struct silt_timer *t)
{
    watch_listeners(silt_container_of(t, struct silt_captive, pause), EPOLLIN);
}

static void on_connection(struct silt_watch *w, uint32_t events)
{
    struct silt_captive *c = silt_container_of(w, struct silt_captive_listener, watch)->captive;
    (void)events;
    for (int i = 0; i < BATCH && w->fd >= 0; i++) {
        struct sockaddr_storage from;
        socklen_t len = sizeof(from);
        int fd = accept4(w->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            watch_listeners(c, 0);
            silt_loop_after(c->all->loop, &c->pause, PAUSE_MS);
        }
        if (fd < 0)
            return;
        on_caller(c, fd, &from);
    }
}

/* Settings */

static int read_globs(const struct silt_egress_capture *q, int fd, char **ret, struct silt_error *e)
{
    struct stat st;
    if (q->globs_len > SILT_EGRESS_GLOBS_MAX || fstat(fd, &st) < 0 || st.st_size != (off_t)q->globs_len)
        return silt_fail(e, SILT_INVALID, "names of another size");
    silt_auto_free char *text = malloc(q->globs_len + 1);
    if (text == NULL || pread(fd, text, q->globs_len, 0) != (ssize_t)q->globs_len)
        return silt_fail(e, SILT_INVALID, "names that cannot be read");
    *ret = silt_take_ptr(text);
    return 0;
}

static void free_captive(struct silt_grave *g)
{
    struct silt_captive *c = silt_container_of(g, struct silt_captive, grave);
    free(c->globs);
    free(c);
}

static void listen_at(struct silt_captive *c, size_t family, int tcp, int udp)
{
    struct silt_captive_listener *l = &c->listeners[family];
    l->watch.fd = tcp;
    silt_loop_watch(c->all->loop, &l->watch, EPOLLIN);
    silt_dns_listen_captive(c->all->dns, &c->dns[family], udp, c->link->number);
}

static void close_sockets(struct silt_captive *c)
{
    silt_loop_cancel(c->all->loop, &c->pause);
    for (size_t i = 0; i < SILT_CAPTIVE_FAMILIES; i++) {
        if (c->listeners[i].watch.fd < 0)
            continue;
        silt_loop_forget(c->all->loop, &c->listeners[i].watch);
        silt_close_fd(&c->listeners[i].watch.fd);
        silt_dns_drop(&c->dns[i]);
    }
}

static void take_sockets(struct silt_captive *c, struct silt_parcel *p)
{
    close_sockets(c);
    for (size_t i = 0; 1 + (i + 1) * SILT_CAPTIVE_SOCKET_MAX <= (size_t)p->nfds; i++) {
        int *fds = p->fds + 1 + i * SILT_CAPTIVE_SOCKET_MAX;
        listen_at(c, i, silt_take_fd(&fds[SILT_CAPTIVE_TCP]), silt_take_fd(&fds[SILT_CAPTIVE_DNS]));
    }
}

static struct silt_captive *add(struct silt_captives *all, struct silt_egress_link *link)
{
    struct silt_captive *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    *c = (struct silt_captive){
        .all = all, .link = link, .pause = {.on_time = on_pause_over}, .grave = {.free = free_captive}};
    for (size_t i = 0; i < SILT_CAPTIVE_FAMILIES; i++) {
        c->listeners[i] =
            (struct silt_captive_listener){.captive = c, .watch = {.fd = -1, .on_ready = on_connection}};
        c->dns[i].udp.fd = -1;
    }
    silt_list_init(&c->offers);
    all->count++;
    link->captive = c;
    return c;
}

int silt_captive_set(struct silt_captives *all, const struct silt_egress_request *q, struct silt_parcel *p,
                     struct silt_error *e)
{
    struct silt_egress_link *link = silt_links_find(all->links, q->link);
    bool has_sockets = p->nfds == 1 + SILT_CAPTIVE_SOCKET_MAX || p->nfds == 1 + SOCKETS_EACH;
    char *globs;
    if ((q->link & SILT_EGRESS_CAPTIVE) == 0 || p->nfds < 1 || (p->nfds > 1 && !has_sockets))
        return silt_fail(e, SILT_INVALID, "%d descriptors for %u", p->nfds, q->link);
    if (!has_sockets && (link == NULL || link->captive == NULL))
        return silt_fail(e, SILT_NOT_FOUND, "it has no sockets");
    if (read_globs(&q->capture, p->fds[0], &globs, e) < 0)
        return -1;
    link = silt_links_at(all->links, q->link);
    if (link == NULL) {
        free(globs);
        return silt_fail(e, SILT_LIMIT, "more than %d links", SILT_LINKS_MAX);
    }
    struct silt_captive *c = link->captive != NULL ? link->captive : add(all, link);
    free(c->globs);
    c->globs = globs;
    c->globs_len = q->capture.globs_len;
    c->port = q->capture.port;
    c->uid = q->capture.uid;
    c->internet = q->capture.internet != 0;
    c->authority = q->authority;
    link->named = true;
    if (has_sockets)
        take_sockets(c, p);
    return 0;
}

void silt_captive_drop(struct silt_egress_link *link)
{
    struct silt_captive *c = link->captive;
    if (c == NULL)
        return;
    silt_offers_cut(c);
    close_sockets(c);
    c->all->count--;
    link->captive = NULL;
    silt_loop_bury(c->all->loop, &c->grave);
}
