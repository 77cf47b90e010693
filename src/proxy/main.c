/* SPDX-License-Identifier: Apache-2.0 */
/* silt-proxy: carries what sandboxes send through us. It has a user of its own, no rights and no
 * memory: sockets of the gate come from silt-super, and it ends with it. */
#include "base/fd.h"
#include "base/log.h"
#include "config/config.h"
#include "proxy/confine.h"
#include "proxy/dns.h"
#include "wire/super.h"

#include <fcntl.h>
#include <stdlib.h>

struct proxy {
    struct silt_loop loop;
    struct silt_watch super;
    struct silt_resolvers resolvers;
    struct silt_dns dns;
};

/* silt-super says nothing to us: whatever comes is its end. */
static void on_super(struct silt_watch *w, uint32_t events)
{
    struct proxy *p = silt_container_of(w, struct proxy, super);
    (void)events;
    silt_loop_stop(&p->loop);
}

/* A machine without IPv6 has half of them. Asked before anything else takes their numbers. */
static int count_sockets(void)
{
    int n = 0;
    while (n < 2 * SILT_DNS_LISTENERS && fcntl(SILT_SUPER_FD_DNS + n, F_GETFD) >= 0)
        n++;
    return n;
}

static int open_all(struct proxy *p, const struct silt_config *c, struct silt_error *e)
{
    int sockets = count_sockets();
    int udp[SILT_DNS_LISTENERS], tcp[SILT_DNS_LISTENERS];
    if (silt_resolvers_init(&p->resolvers, c->network_resolvers, e) < 0)
        return -1;
    if (silt_loop_open(&p->loop, e) < 0)
        return -1;
    for (int i = 0; i < SILT_DNS_LISTENERS; i++) {
        udp[i] = sockets > 2 * i ? SILT_SUPER_FD_DNS + 2 * i : -1;
        tcp[i] = sockets > 2 * i ? SILT_SUPER_FD_DNS + 2 * i + 1 : -1;
    }
    p->super = (struct silt_watch){.fd = SILT_SUPER_FD_CHANNEL, .on_ready = on_super};
    silt_loop_watch(&p->loop, &p->super, EPOLLIN);
    p->dns.loop = &p->loop;
    p->dns.resolvers = &p->resolvers;
    silt_dns_open(&p->dns, udp, tcp);
    return silt_proxy_confine(e);
}

int main(int argc, char **argv)
{
    static struct silt_config config;
    static struct proxy proxy;
    struct silt_error e = {0};
    if (silt_config_load(argc, argv, &config, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "proxy.config", "error=\"%s\"", e.text);
        return 2;
    }
    silt_log_open("silt-proxy", config.log_level);
    if (open_all(&proxy, &config, &e) < 0 || silt_loop_run(&proxy.loop, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "proxy.failed", "error=\"%s\"", e.text);
        return 1;
    }
    return 0;
}
