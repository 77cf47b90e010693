/* SPDX-License-Identifier: Apache-2.0 */
/* silt-proxy: carries the traffic of sandboxes. It has its own user, no capabilities and no state
 * on disk; its sockets in the gateway come from silt-super, with which it exits. Started as
 * silt-dial it is the small process in the gateway's namespace that creates sockets there; started
 * as silt-preview it serves previews. */
#include "base/sock_diag.h"
#include "base/fd.h"
#include "base/log.h"
#include "config/config.h"
#include "proxy/egress/intercept.h"
#include "proxy/core/confine.h"
#include "proxy/egress/dial_server.h"
#include "proxy/dns/dns.h"
#include "proxy/egress/siltd_channel.h"
#include "proxy/egress/allow_conn.h"
#include "proxy/preview/preview.h"
#include "proxy/core/role.h"
#include "proxy/egress/nflog_reader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>

struct proxy {
    struct silt_loop loop;
    struct silt_watch super;
    struct silt_resolvers resolvers;
    struct silt_dns dns;
    struct silt_link_table links;
    struct silt_egress egress;
    struct silt_dial_client dialer;
    struct silt_allow_conns passages;
    struct silt_nflog_reader told;
    struct silt_intercepts captives;
    struct silt_intercept_cas authorities;
};

static void on_note(struct proxy *p, const struct silt_super_note *note, struct silt_parcel *in)
{
    if (note->type != SILT_SUPER_PEER || in->nfds != 1)
        return;
    if (note->key == SILT_SUPER_PAIR_EGRESS)
        silt_egress_replace(&p->egress, silt_take_fd(&in->fds[0]));
    else if (note->key == SILT_SUPER_PAIR_DIAL)
        silt_dial_client_replace(&p->dialer, silt_take_fd(&in->fds[0]));
}

static void on_super(struct silt_watch *w, uint32_t events)
{
    struct proxy *p = silt_outer(w, struct proxy, super);
    struct silt_super_note note;
    struct silt_parcel in;
    (void)events;
    if (!silt_role_hear(&p->loop, w, &note, &in))
        return;
    on_note(p, &note, &in);
    silt_parcel_close(&in);
}

/* Without IPv6 there are half as many. Checked before any other descriptor can take these numbers.
 */
static int count_families(void)
{
    int n = 0;
    while (n < 2
           && fcntl(SILT_SUPER_FD_GATEWAY + (n + 1) * SILT_SUPER_SOCKET_MAX - 1, F_GETFD) >= 0)
        n++;
    return n;
}

static void listen_all(struct proxy *p, int families)
{
    for (int i = 0; i < families; i++) {
        int at = SILT_SUPER_FD_GATEWAY + i * SILT_SUPER_SOCKET_MAX;
        silt_dns_listen(&p->dns, at + SILT_SUPER_SOCKET_DNS_UDP, at + SILT_SUPER_SOCKET_DNS_TCP,
                        false);
        silt_dns_listen(&p->dns, at + SILT_SUPER_SOCKET_ALLOW_UDP, at + SILT_SUPER_SOCKET_ALLOW_TCP,
                        true);
        silt_allow_conns_listen(&p->passages, at + SILT_SUPER_SOCKET_ALLOW);
    }
}

static int open_all(struct proxy *p, const struct silt_config *c, struct silt_error *e)
{
    int families = count_families();
    if (silt_resolvers_init(&p->resolvers, c->network_resolvers, e) < 0)
        return -1;
    if (silt_link_table_init(&p->links, c->network_ipv4, c->network_ipv6, c->network_open, e) < 0)
        return -1;
    if (silt_loop_open(&p->loop, e) < 0 || silt_fd_nonblock(SILT_SUPER_FD_CHANNEL, e) < 0)
        return -1;
    p->super = (struct silt_watch){.fd = SILT_SUPER_FD_CHANNEL, .on_ready = on_super};
    silt_loop_watch(&p->loop, &p->super, EPOLLIN);
    silt_intercept_cas_init(&p->authorities);
    p->captives = (struct silt_intercepts){.loop = &p->loop,
                                           .links = &p->links,
                                           .dns = &p->dns,
                                           .authorities = &p->authorities,
                                           .passages = &p->passages,
                                           .each = c->network_connections};
    if (silt_sock_diag_open(&p->captives.diag, e) < 0)
        return -1;
    silt_egress_init(&p->egress, &p->loop, &p->links, &p->captives);
    silt_dial_client_init(&p->dialer, &p->loop);
    p->dns.loop = p->passages.loop = p->told.loop = &p->loop;
    p->dns.links = p->passages.links = p->told.links = &p->links;
    p->dns.resolvers = &p->resolvers;
    p->passages.dialer = &p->dialer;
    silt_dns_init(&p->dns);
    silt_allow_conns_init(&p->passages, silt_role_files());
    listen_all(p, families);
    silt_nflog_reader_open(&p->told, SILT_SUPER_FD_NFLOG);
    return silt_proxy_confine(e);
}

static int run(const struct silt_config *c, struct silt_error *e)
{
    static struct proxy proxy;
    return open_all(&proxy, c, e) < 0 ? -1 : silt_loop_run(&proxy.loop, e);
}

int main(int argc, char **argv)
{
    static struct silt_config config;
    struct silt_error e = {0};
    const char *name = argc > 0 ? argv[0] : "";
    bool dials = strcmp(name, "silt-dial") == 0, previews = strcmp(name, "silt-preview") == 0;
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* private keys must not end up in a core file */
    if (silt_config_load(argc, argv, &config, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "proxy.config", "error=\"%s\"", e.text);
        return 2;
    }
    silt_log_open(dials ? "silt-dial" : previews ? "silt-preview" : "silt-proxy", config.log_level);
    if ((dials      ? silt_dial_run(&e)
         : previews ? silt_preview_run(&config, &e)
                    : run(&config, &e))
        < 0) {
        silt_log(SILT_LOG_ERROR, "proxy.failed", "error=\"%s\"", e.text);
        return 1;
    }
    return 0;
}
