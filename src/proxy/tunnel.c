/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/tunnel.h"
#include "proxy/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { PIECE = 64 << 10, LAST_PIECES = 64 };

/* One end; what the other said and it has not taken waits in `out`. */
struct end {
    struct tunnel *tunnel; /* borrowed */
    struct silt_watch watch;
    struct silt_buf out;
    bool ended; /* it says no more */
    bool shut;  /* we said no more to it */
};

struct tunnel {
    struct silt_loop *loop;   /* borrowed */
    struct silt_pool *pool;   /* borrowed */
    struct silt_route *route; /* borrowed; NULL: it has let go of us */
    struct silt_route_user user;
    struct silt_grave grave;
    bool over;
    struct end ends[2]; /* the visitor, the service */
};

static char room[PIECE];

static struct end *other(struct end *x)
{
    return x == &x->tunnel->ends[0] ? &x->tunnel->ends[1] : &x->tunnel->ends[0];
}

static void free_tunnel(struct silt_grave *g)
{
    struct tunnel *t = silt_container_of(g, struct tunnel, grave);
    silt_buf_fini(&t->ends[0].out);
    silt_buf_fini(&t->ends[1].out);
    free(t);
}

static void close_tunnel(struct tunnel *t, bool reset)
{
    if (t->over)
        return;
    t->over = true;
    for (int i = 0; i < 2; i++) {
        silt_loop_forget(t->loop, &t->ends[i].watch);
        if (reset)
            silt_flow_reset_at_close(t->ends[i].watch.fd);
        silt_close_fd(&t->ends[i].watch.fd);
    }
    t->pool->open -= SILT_COUNT(t->ends);
    if (t->route != NULL)
        silt_route_unuse(t->route, &t->user);
    silt_loop_bury(t->loop, &t->grave);
}

/* Passes on that the one says no more, once the other has all. -1: broken. */
static int pass_end(struct end *to)
{
    if (!other(to)->ended || to->shut || to->out.len > 0)
        return 0;
    to->shut = true;
    return shutdown(to->watch.fd, SHUT_WR) < 0 && errno != ENOTCONN ? -1 : 0;
}

static int pull(struct end *from)
{
    struct end *to = other(from);
    uint64_t ignored = 0;
    if (from->ended || to->out.len > 0)
        return 0;
    ssize_t n = recv(from->watch.fd, room, sizeof(room), MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    from->ended = n == 0;
    return n == 0 ? 0 : silt_flow_forward(to->watch.fd, &to->out, (silt_slice){room, (size_t)n}, &ignored);
}

static void settle(struct tunnel *t)
{
    for (int i = 0; i < 2; i++) {
        struct end *x = &t->ends[i];
        uint32_t events = x->out.len > 0 ? EPOLLOUT : 0U;
        if (!x->ended && other(x)->out.len == 0)
            events |= EPOLLIN;
        silt_loop_watch(t->loop, &x->watch, events != 0 ? events : (uint32_t)EPOLLET);
    }
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct end *x = silt_container_of(w, struct end, watch);
    struct tunnel *t = x->tunnel;
    uint64_t ignored = 0;
    if (t->over)
        return;
    bool broken = (events & EPOLLERR) != 0 && (events & EPOLLIN) == 0;
    broken = broken || ((events & EPOLLOUT) != 0 && silt_flow_flush(w->fd, &x->out, &ignored) < 0);
    broken = broken || ((events & (EPOLLIN | EPOLLHUP)) != 0 && pull(x) < 0);
    broken = broken || pass_end(&t->ends[0]) < 0 || pass_end(&t->ends[1]) < 0;
    if (broken || (t->ends[0].shut && t->ends[1].shut))
        close_tunnel(t, broken);
    else
        settle(t);
}

/* The container has ended: what it said last still goes out, as far as it is taken. */
static void on_drop(struct silt_route_user *u)
{
    struct tunnel *t = silt_container_of(u, struct tunnel, user);
    uint64_t ignored = 0;
    t->route = NULL;
    if (silt_flow_flush(t->ends[0].watch.fd, &t->ends[0].out, &ignored) == 0)
        for (int i = 0; i < LAST_PIECES && !t->ends[1].ended && t->ends[0].out.len == 0; i++) {
            ssize_t n = recv(t->ends[1].watch.fd, room, sizeof(room), MSG_DONTWAIT);
            if (n <= 0 || silt_flow_forward(t->ends[0].watch.fd, &t->ends[0].out, (silt_slice){room, (size_t)n}, &ignored) < 0)
                break;
        }
    close_tunnel(t, true);
}

void silt_tunnel_start(struct silt_pool *pool, struct silt_route *route, int visitor, int inside)
{
    struct tunnel *t = calloc(1, sizeof(*t));
    const int fds[] = {visitor, inside};
    if (t == NULL)
        abort();
    pool->open += SILT_COUNT(fds);
    *t = (struct tunnel){.loop = pool->loop, .pool = pool, .route = route, .user = {.on_drop = on_drop}, .grave = {.free = free_tunnel}};
    silt_list_init(&t->user.link);
    for (int i = 0; i < 2; i++) {
        struct end *x = &t->ends[i];
        *x = (struct end){.tunnel = t, .watch = {.fd = fds[i], .on_ready = on_ready}};
        silt_buf_init(&x->out, 2 * PIECE);
        silt_flow_keep_alive(fds[i]);
    }
    silt_route_use(route, &t->user);
    settle(t);
}
