/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/preview.h"
#include "base/log.h"
#include "proxy/core/confine.h"
#include "proxy/preview/tunnel.h"
#include "proxy/core/role.h"
#include "proxy/preview/client_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>

enum { SAID_MAX = SILT_CLIENT_CONN_PIECE + SILT_HTTP_HEAD_MAX };

struct preview {
    struct silt_loop loop;
    struct silt_watch super;
    struct silt_preview_channel talk;
    struct silt_routes routes;
    struct silt_client_conns visitors;
    char domain[128]; /* without a port */
    bool listens;
};

static void on_drop(void *context, uint64_t route)
{
    struct preview *p = context;
    silt_routes_drop_number(&p->routes, route);
}

static void begin_tunnel(struct preview *p, const struct silt_preview_answer *n, int fds[2])
{
    struct silt_route *route = silt_routes_hand(&p->routes, n);
    struct silt_error ignored;
    bool room = route != NULL && route->guest->using < p->visitors.settings.connections
                && silt_pool_has_room(&p->visitors.pool);
    if (room && silt_fd_nonblock(fds[0], &ignored) == 0 && silt_fd_nonblock(fds[1], &ignored) == 0)
        silt_tunnel_start(&p->visitors.pool, route, silt_take_fd(&fds[0]), silt_take_fd(&fds[1]));
}

static void on_hand(void *context, const struct silt_preview_answer *n, int fds[2])
{
    struct preview *p = context;
    static char said[SAID_MAX];
    size_t bytes = n->body.hand.bytes;
    if ((n->body.hand.flags & SILT_PREVIEW_TUNNEL) != 0) {
        begin_tunnel(p, n, fds);
        return;
    }
    if (bytes > sizeof(said) || pread(fds[1], said, bytes, 0) != (ssize_t)bytes) {
        silt_log(SILT_LOG_WARN, "preview.hand", "bytes=%zu error=\"cannot be read\"", bytes);
        return;
    }
    struct silt_route *route = silt_routes_hand(&p->routes, n);
    struct silt_error ignored;
    if (route == NULL || silt_fd_nonblock(fds[0], &ignored) < 0)
        return;
    silt_client_conns_hand(&p->visitors, silt_take_fd(&fds[0]), (silt_slice){said, bytes}, route,
                           n->body.hand.flags);
}

/* Certificates */

/* Reads a whole file. It may be the private key, so no copy stays in memory. */
static int read_pem(int fd, struct silt_buf *out, struct silt_error *e)
{
    char *room = silt_buf_room(out, SILT_TLS_PEM_MAX);
    ssize_t n = room != NULL ? pread(fd, room, SILT_TLS_PEM_MAX, 0) : -1;
    if (n < 0)
        return silt_fail_errno(e, "read");
    out->len = (size_t)n;
    return 0;
}

static void wipe(struct silt_buf *b)
{
    if (b->cap > 0)
        explicit_bzero(b->data, b->cap);
    silt_buf_fini(b);
}

static int load_identity(const int fds[2], struct silt_tls_identity **ret, struct silt_error *e)
{
    struct silt_buf certificate, key;
    silt_buf_init(&certificate, SILT_TLS_PEM_MAX);
    silt_buf_init(&key, SILT_TLS_PEM_MAX);
    int got = read_pem(fds[0], &certificate, e);
    if (got == 0)
        got = read_pem(fds[1], &key, e);
    if (got == 0)
        got = silt_tls_identity_new(silt_buf_slice(&certificate), silt_buf_slice(&key), ret, e);
    silt_buf_fini(&certificate);
    wipe(&key);
    return got;
}

static void report(struct preview *p, struct silt_super_told *told)
{
    struct silt_parcel out = {.data = told, .len = sizeof(*told)};
    struct silt_error ignored;
    told->type = SILT_SUPER_CERTIFICATE;
    (void)silt_fd_send(p->super.fd, &out, &ignored);
}

/* New connections use it; open ones keep their certificate. */
static void use_identity(struct preview *p, struct silt_tls_identity *i)
{
    struct silt_super_told told = {.used = 1, .until_s = silt_tls_identity_until_s(i)};
    char name[SILT_TLS_NAME_MAX], host[sizeof(p->domain) + 8];
    silt_tls_identity_name(i, name);
    (void)snprintf(host, sizeof(host), "preview.%s", p->domain);
    (void)snprintf(told.text, sizeof(told.text), "%.200s%s", name,
                   silt_tls_identity_is_for(i, host) ? "" : " (not for previews)");
    silt_tls_identity_free(p->visitors.identity);
    p->visitors.identity = i;
    report(p, &told);
}

static void on_certificate(struct preview *p, const struct silt_parcel *in)
{
    struct silt_tls_identity *i = NULL;
    struct silt_error e = {0};
    if (in->nfds == 2 && load_identity(in->fds, &i, &e) == 0) {
        use_identity(p, i);
    } else if (in->nfds == 2) {
        struct silt_super_told told = {.used = 0};
        (void)snprintf(told.text, sizeof(told.text), "%.250s", e.text);
        report(p, &told);
    }
    if (p->listens && p->visitors.listener.fd < 0)
        silt_client_conns_listen(&p->visitors, SILT_SUPER_FD_PREVIEW);
}

static void on_super(struct silt_watch *w, uint32_t events)
{
    struct preview *p = silt_outer(w, struct preview, super);
    struct silt_super_note note;
    struct silt_parcel in;
    (void)events;
    if (!silt_role_hear(&p->loop, w, &note, &in))
        return;
    if (note.type == SILT_SUPER_PEER && in.nfds == 1) {
        silt_preview_channel_replace(&p->talk, silt_take_fd(&in.fds[0]));
        silt_routes_renew(&p->routes);
        silt_preview_channel_flush(&p->talk);
    }
    if (note.type == SILT_SUPER_CERTIFICATE)
        on_certificate(p, &in);
    silt_parcel_close(&in);
}

static int set_up(struct preview *p, const struct silt_config *c, struct silt_error *e)
{
    struct silt_preview_channel_hooks hooks = {
        .on_drop = on_drop, .on_hand = on_hand, .context = p};
    silt_preview_channel_init(&p->talk, &p->loop, &hooks);
    silt_routes_init(&p->routes, &p->loop, &p->talk, c->preview_bandwidth);
    p->visitors = (struct silt_client_conns){
        .loop = &p->loop,
        .routes = &p->routes,
        .talk = &p->talk,
        .settings = {.rule = {.domain = silt_slice_of(c->preview_domain),
                              .paths = strcmp(c->preview_paths, "on") == 0},
                     .wait_ms = c->preview_wait_ms,
                     .head_timeout_ms = c->http_head_timeout_ms,
                     .idle_timeout_ms = c->preview_idle_timeout_ms,
                     .silence_timeout_ms = c->preview_silence_timeout_ms,
                     .total_timeout_s = c->preview_total_timeout_s,
                     .connections = c->preview_connections,
                     .connections_all = c->preview_connections_all}};
    p->visitors.tls = silt_config_previews_https(c); /* terminated by a reverse proxy */
    p->visitors.veiled = c->preview_certificate[0] != 0;
    p->visitors.listener.fd = -1;
    (void)snprintf(p->domain, sizeof(p->domain), "%.*s", (int)strcspn(c->preview_domain, ":"),
                   c->preview_domain);
    silt_client_conns_init(&p->visitors, silt_role_files());
    return silt_ip_prefix_list_parse(silt_slice_of(c->fronts), &p->visitors.fronts, e);
}

int silt_preview_run(const struct silt_config *c, struct silt_error *e)
{
    static struct preview p;
    p.listens =
        fcntl(SILT_SUPER_FD_PREVIEW, F_GETFD) >= 0; /* before anything else gets this number */
    (void)prctl(PR_SET_NAME, "silt-preview", 0, 0, 0);
    if (silt_loop_open(&p.loop, e) < 0 || silt_fd_nonblock(SILT_SUPER_FD_CHANNEL, e) < 0
        || (p.listens && silt_fd_nonblock(SILT_SUPER_FD_PREVIEW, e) < 0))
        return -1;
    p.super = (struct silt_watch){.fd = SILT_SUPER_FD_CHANNEL, .on_ready = on_super};
    silt_loop_watch(&p.loop, &p.super, EPOLLIN);
    if (set_up(&p, c, e) < 0)
        return -1;
    if (p.listens && !p.visitors.veiled) /* else when there is a certificate */
        silt_client_conns_listen(&p.visitors, SILT_SUPER_FD_PREVIEW);
    if (silt_preview_confine(e) < 0)
        return -1;
    return silt_loop_run(&p.loop, e);
}
