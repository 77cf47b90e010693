/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview.h"
#include "base/log.h"
#include "proxy/confine.h"
#include "proxy/visitor.h"
#include "wire/super.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { SAID_MAX = SILT_VISITOR_PIECE + SILT_HTTP_HEAD_MAX };

struct preview {
    struct silt_loop loop;
    struct silt_watch super;
    struct silt_talk talk;
    struct silt_routes routes;
    struct silt_visitors visitors;
};

static void on_drop(void *context, uint64_t route)
{
    struct preview *p = context;
    silt_routes_drop_number(&p->routes, route);
}

static void on_hand(void *context, const struct silt_preview_answer *n, int fds[2])
{
    struct preview *p = context;
    static char said[SAID_MAX];
    size_t bytes = n->body.hand.bytes;
    if (bytes > sizeof(said) || pread(fds[1], said, bytes, 0) != (ssize_t)bytes) {
        silt_log(SILT_LOG_WARN, "preview.hand", "bytes=%zu error=\"cannot be read\"", bytes);
        return;
    }
    struct silt_route *route = silt_routes_hand(&p->routes, n);
    struct silt_error ignored;
    if (route == NULL || silt_fd_nonblock(fds[0], &ignored) < 0)
        return;
    silt_visitors_hand(&p->visitors, silt_take_fd(&fds[0]), (silt_slice){said, bytes}, route, n->body.hand.flags);
}

static void on_super(struct silt_watch *w, uint32_t events)
{
    struct preview *p = silt_container_of(w, struct preview, super);
    struct silt_super_note note;
    struct silt_parcel in = {.data = &note, .len = sizeof(note)};
    struct silt_error e;
    (void)events;
    int got = silt_fd_recv(w->fd, &in, &e);
    if (got < 0 && e.sys == EAGAIN)
        return;
    if (got > 0 && in.len == sizeof(note) && note.type == SILT_SUPER_PEER && in.nfds == 1) {
        silt_talk_replace(&p->talk, silt_take_fd(&in.fds[0]));
        silt_routes_renew(&p->routes);
        silt_talk_flush(&p->talk);
    }
    silt_parcel_close(&in);
    if (got <= 0)
        silt_loop_stop(&p->loop); /* it is gone */
}

static size_t count_files(void)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) < 0 ? 0 : (size_t)files.rlim_cur;
}

static void set_up(struct preview *p, const struct silt_config *c)
{
    struct silt_talk_hooks hooks = {.on_drop = on_drop, .on_hand = on_hand, .context = p};
    silt_talk_init(&p->talk, &p->loop, &hooks);
    silt_routes_init(&p->routes, &p->loop, &p->talk, c->preview_bandwidth);
    p->visitors = (struct silt_visitors){
        .loop = &p->loop,
        .routes = &p->routes,
        .talk = &p->talk,
        .settings = {.rule = {.domain = silt_slice_of(c->preview_domain), .paths = strcmp(c->preview_paths, "on") == 0},
                     .wait_ms = c->preview_wait_ms,
                     .head_timeout_ms = c->http_head_timeout_ms,
                     .idle_timeout_ms = c->preview_idle_timeout_ms,
                     .silence_timeout_ms = c->preview_silence_timeout_ms,
                     .total_timeout_s = c->preview_total_timeout_s,
                     .connections = c->preview_connections,
                     .connections_all = c->preview_connections_all}};
    p->visitors.tls = silt_config_previews_https(c); /* by whoever stands in front of us */
    silt_visitors_init(&p->visitors, count_files());
}

int silt_preview_run(const struct silt_config *c, struct silt_error *e)
{
    static struct preview p;
    bool listens = fcntl(SILT_SUPER_FD_PREVIEW, F_GETFD) >= 0; /* before anything else gets this number */
    (void)prctl(PR_SET_NAME, "silt-preview", 0, 0, 0);
    if (silt_loop_open(&p.loop, e) < 0 || silt_fd_nonblock(SILT_SUPER_FD_CHANNEL, e) < 0
        || (listens && silt_fd_nonblock(SILT_SUPER_FD_PREVIEW, e) < 0))
        return -1;
    p.super = (struct silt_watch){.fd = SILT_SUPER_FD_CHANNEL, .on_ready = on_super};
    silt_loop_watch(&p.loop, &p.super, EPOLLIN);
    set_up(&p, c);
    if (listens)
        silt_visitors_listen(&p.visitors, SILT_SUPER_FD_PREVIEW);
    if (silt_preview_confine(e) < 0)
        return -1;
    return silt_loop_run(&p.loop, e);
}
