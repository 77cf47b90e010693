/* SPDX-License-Identifier: Apache-2.0 */
/* silt-proxy: carries what sandboxes send through us. It has a user of its own, no rights and no
 * memory: sockets of the gate come from silt-super, and it ends with it. Started as silt-dial it is
 * the small process in the gate that makes sockets there, as silt-preview it serves visitors. */
#include "base/diag.h"
#include "base/fd.h"
#include "base/log.h"
#include "config/config.h"
#include "proxy/captive.h"
#include "proxy/confine.h"
#include "proxy/dial.h"
#include "proxy/dns.h"
#include "proxy/egress.h"
#include "proxy/passage.h"
#include "proxy/preview.h"
#include "proxy/role.h"
#include "proxy/told.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>

struct proxy {
    struct silt_loop loop;
    struct silt_watch super;
    struct silt_resolvers resolvers;
    struct silt_dns dns;
    struct silt_links links;
    struct silt_egress egress;
    struct silt_dialer dialer;
    struct silt_passages passages;
    struct silt_told told;
    struct silt_captives captives;
    struct silt_authorities authorities;
};

static void on_note(struct proxy *p, const struct silt_super_note *note, struct silt_parcel *in)
{
    if (note->type != SILT_SUPER_PEER || in->nfds != 1)
        return;
    if (note->key == SILT_SUPER_PAIR_EGRESS)
        silt_egress_replace(&p->egress, silt_take_fd(&in->fds[0]));
    else if (note->key == SILT_SUPER_PAIR_DIAL)
        silt_dialer_replace(&p->dialer, silt_take_fd(&in->fds[0]));
}

static void on_super(struct silt_watch *w, uint32_t events)
{
    struct proxy *p = silt_container_of(w, struct proxy, super);
    struct silt_super_note note;
    struct silt_parcel in;
    (void)events;
    if (!silt_role_hear(&p->loop, w, &note, &in))
        return;
    on_note(p, &note, &in);
    silt_parcel_close(&in);
}

/* A machine without IPv6 has half of them. Asked before anything else takes their numbers. */
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
        silt_passages_listen(&p->passages, at + SILT_SUPER_SOCKET_ALLOW);
    }
}

static int open_all(struct proxy *p, const struct silt_config *c, struct silt_error *e)
{
    int families = count_families();
    if (silt_resolvers_init(&p->resolvers, c->network_resolvers, e) < 0)
        return -1;
    if (silt_links_init(&p->links, c->network_ipv4, c->network_ipv6, c->network_open, e) < 0)
        return -1;
    if (silt_loop_open(&p->loop, e) < 0 || silt_fd_nonblock(SILT_SUPER_FD_CHANNEL, e) < 0)
        return -1;
    p->super = (struct silt_watch){.fd = SILT_SUPER_FD_CHANNEL, .on_ready = on_super};
    silt_loop_watch(&p->loop, &p->super, EPOLLIN);
    silt_authorities_init(&p->authorities);
    p->captives = (struct silt_captives){.loop = &p->loop,
                                         .links = &p->links,
                                         .dns = &p->dns,
                                         .authorities = &p->authorities,
                                         .passages = &p->passages,
                                         .each = c->network_connections};
    if (silt_diag_open(&p->captives.diag, e) < 0)
        return -1;
    silt_egress_init(&p->egress, &p->loop, &p->links, &p->captives);
    silt_dialer_init(&p->dialer, &p->loop);
    p->dns.loop = p->passages.loop = p->told.loop = &p->loop;
    p->dns.links = p->passages.links = p->told.links = &p->links;
    p->dns.resolvers = &p->resolvers;
    p->passages.dialer = &p->dialer;
    silt_dns_init(&p->dns);
    silt_passages_init(&p->passages, silt_role_files());
    listen_all(p, families);
    silt_told_open(&p->told, SILT_SUPER_FD_NFLOG);
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
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* keys of certificates and authorities must not end in a core file */
    if (silt_config_load(argc, argv, &config, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "proxy.config", "error=\"%s\"", e.text);
        return 2;
    }
    silt_log_open(dials ? "silt-dial" : previews ? "silt-preview" : "silt-proxy", config.log_level);
    if ((dials ? silt_dial_run(&e) : previews ? silt_preview_run(&config, &e) : run(&config, &e)) < 0) {
        silt_log(SILT_LOG_ERROR, "proxy.failed", "error=\"%s\"", e.text);
        return 1;
    }
    return 0;
}
