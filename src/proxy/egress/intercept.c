/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/intercept.h"
#include "base/fd.h"
#include "base/log.h"
#include "proxy/core/relay.h"
#include "wire/priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    BATCH = 64, /* accepted per loop turn */
    PAUSE_MS = 100,
    FEW = 16, /* connections of one sandbox when places are scarce */
    SOCKETS_EACH = SILT_INTERCEPT_FAMILIES * SILT_CAPTIVE_SOCKET_MAX,
};

/* The placeholder networks of name_policy.c, so not private networks of anybody. */
static const silt_ip_prefix made_up[] = {{4, 32, {11, 0, 0, 1}}, {6, 128, {0xfd, [15] = 1}}};

/* The sidecar may serve any internet address, also unassigned ones. */
static bool is_closed(const struct silt_intercepts *all, const silt_ip_prefix *address)
{
    for (size_t i = 0; i < SILT_COUNT(made_up); i++)
        if (silt_ip_prefix_covers(&made_up[i], address))
            return false;
    return silt_ip_prefix_is_private(address, &all->links->open);
}

/* 0: may be offered to the sidecar. */
static enum silt_egress_reason admit(const struct silt_intercept *c, const silt_ip_prefix *address)
{
    const struct silt_intercepts *all = c->all;
    size_t most = all->passages->most, sockets = all->count * SOCKETS_EACH / 2;
    struct silt_places places = {
        .most = most > sockets ? most - sockets : 0, .each = all->each, .few = FEW};
    if (is_closed(all, address))
        return SILT_REFUSED_CLOSED;
    if (c->port == 0)
        return SILT_REFUSED_NOBODY;
    bool room = silt_places_left(&places, all->offers + all->passages->count, c->link->counts.open);
    return room ? 0 : SILT_REFUSED_LIMIT;
}

/* Takes fd. Its local address is the original destination. */
static void on_caller(struct silt_intercept *c, int fd, const struct sockaddr_storage *from)
{
    struct silt_intercept_conn_caller caller = {.fd = fd, .from = *from};
    socklen_t len = sizeof(caller.to);
    if (getsockname(fd, (struct sockaddr *)&caller.to, &len) < 0) {
        silt_close_fd(&fd);
        return;
    }
    caller.address = silt_link_table_address(&caller.to);
    caller.port = silt_link_table_port(&caller.to);
    enum silt_egress_reason why = admit(c, &caller.address);
    if (why == 0) {
        silt_intercept_conn_begin(c, &caller);
        return;
    }
    struct silt_egress_refusal r = {.protocol = SILT_EGRESS_TCP, .reason = (uint8_t)why};
    silt_link_table_put(&r, &caller.address, caller.port);
    silt_link_table_refuse(c->all->links, c->link, &r);
    silt_relay_reset_at_close(fd);
    silt_close_fd(&fd);
}

static void watch_listeners(struct silt_intercept *c, uint32_t events)
{
    for (size_t i = 0; i < SILT_COUNT(c->listeners); i++)
        if (c->listeners[i].watch.fd >= 0)
            silt_loop_watch(c->all->loop, &c->listeners[i].watch, events);
}

static void on_pause_over(struct silt_timer *t)
{
    watch_listeners(silt_outer(t, struct silt_intercept, pause), EPOLLIN);
}

static void on_connection(struct silt_watch *w, uint32_t events)
{
    struct silt_intercept *c = silt_outer(w, struct silt_intercept_listener, watch)->captive;
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
    if (q->globs_len > SILT_EGRESS_GLOBS_MAX || fstat(fd, &st) < 0
        || st.st_size != (off_t)q->globs_len)
        return silt_fail(e, SILT_INVALID, "names of another size");
    silt_auto_free char *text = malloc(q->globs_len + 1);
    if (text == NULL || pread(fd, text, q->globs_len, 0) != (ssize_t)q->globs_len)
        return silt_fail(e, SILT_INVALID, "names that cannot be read");
    *ret = silt_take_ptr(text);
    return 0;
}

static void free_captive(struct silt_grave *g)
{
    struct silt_intercept *c = silt_outer(g, struct silt_intercept, grave);
    free(c->names.globs);
    free(c);
}

static void listen_at(struct silt_intercept *c, size_t family, int tcp, int udp)
{
    struct silt_intercept_listener *l = &c->listeners[family];
    l->watch.fd = tcp;
    silt_loop_watch(c->all->loop, &l->watch, EPOLLIN);
    silt_dns_listen_captive(c->all->dns, &c->dns[family], udp, c->link->number);
}

static void close_sockets(struct silt_intercept *c)
{
    silt_loop_cancel(c->all->loop, &c->pause);
    for (size_t i = 0; i < SILT_INTERCEPT_FAMILIES; i++) {
        if (c->listeners[i].watch.fd < 0)
            continue;
        silt_loop_forget(c->all->loop, &c->listeners[i].watch);
        silt_close_fd(&c->listeners[i].watch.fd);
        silt_dns_drop(&c->dns[i]);
    }
}

static void take_sockets(struct silt_intercept *c, struct silt_parcel *p)
{
    close_sockets(c);
    for (size_t i = 0; 1 + (i + 1) * SILT_CAPTIVE_SOCKET_MAX <= (size_t)p->nfds; i++) {
        int *fds = p->fds + 1 + i * SILT_CAPTIVE_SOCKET_MAX;
        listen_at(c, i, silt_take_fd(&fds[SILT_CAPTIVE_TCP]), silt_take_fd(&fds[SILT_CAPTIVE_DNS]));
    }
}

static struct silt_intercept *add(struct silt_intercepts *all, struct silt_egress_link *link)
{
    struct silt_intercept *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    *c = (struct silt_intercept){.all = all,
                                 .link = link,
                                 .pause = {.on_time = on_pause_over},
                                 .grave = {.free = free_captive}};
    for (size_t i = 0; i < SILT_INTERCEPT_FAMILIES; i++) {
        c->listeners[i] = (struct silt_intercept_listener){
            .captive = c, .watch = {.fd = -1, .on_ready = on_connection}};
        c->dns[i].udp.fd = -1;
    }
    silt_list_init(&c->offers);
    all->count++;
    link->captive = c;
    link->names = &c->names;
    return c;
}

int silt_intercept_set(struct silt_intercepts *all, const struct silt_egress_request *q,
                       struct silt_parcel *p, struct silt_error *e)
{
    struct silt_egress_link *link = silt_link_table_find(all->links, q->link);
    bool has_sockets = p->nfds == 1 + SILT_CAPTIVE_SOCKET_MAX || p->nfds == 1 + SOCKETS_EACH;
    char *globs;
    if ((q->link & SILT_EGRESS_CAPTIVE) == 0 || p->nfds < 1 || (p->nfds > 1 && !has_sockets))
        return silt_fail(e, SILT_INVALID, "%d descriptors for %u", p->nfds, q->link);
    if (!has_sockets && (link == NULL || link->captive == NULL))
        return silt_fail(e, SILT_NOT_FOUND, "it has no sockets");
    if (read_globs(&q->capture, p->fds[0], &globs, e) < 0)
        return -1;
    link = silt_link_table_at(all->links, q->link);
    if (link == NULL) {
        free(globs);
        return silt_fail(e, SILT_LIMIT, "more than %d links", SILT_LINK_TABLE_MAX);
    }
    struct silt_intercept *c = link->captive != NULL ? link->captive : add(all, link);
    free(c->names.globs);
    c->names.globs = globs;
    c->names.globs_len = q->capture.globs_len;
    c->port = q->capture.port;
    c->uid = q->capture.uid;
    c->names.internet = q->capture.internet != 0;
    c->authority = q->authority;
    link->named = true;
    if (has_sockets)
        take_sockets(c, p);
    return 0;
}

void silt_intercept_drop(struct silt_egress_link *link)
{
    struct silt_intercept *c = link->captive;
    if (c == NULL)
        return;
    silt_intercept_conns_cut(c);
    close_sockets(c);
    c->all->count--;
    link->captive = NULL;
    link->names = NULL;
    silt_loop_bury(c->all->loop, &c->grave);
}
