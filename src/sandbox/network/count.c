/* SPDX-License-Identifier: Apache-2.0 */
/* count: a sandbox's traffic: the counters of its link plus those of silt-proxy. */
#include "sandbox/network/network.h"
#include "sandbox/core/sandbox.h"

#include <stdlib.h>

struct counting {
    struct silt_registry *registry; /* borrowed */
    uint32_t slot;
    silt_network_counted *on_counted;
    void *context;
    struct silt_priv_netstat link;
};

static void on_proxy_counted(void *context, const struct silt_egress_counts *counts)
{
    struct counting *c = context;
    struct silt_network_counts all = {.link = &c->link, .proxy = counts};
    c->on_counted(c->context, &all, NULL);
    free(c);
}

static void on_counters(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct counting *c = context;
    (void)fds;
    (void)nfds;
    struct silt_sandbox *s = c->registry->by_slot[c->slot];
    if (a->ok && s != NULL) {
        c->link = a->body.netstat;
        silt_egress_count(s, on_proxy_counted, c);
        return;
    }
    bool runs = s != NULL && silt_sandbox_is_up(s);
    bool failed = !a->ok && runs;
    c->on_counted(c->context, NULL, failed ? &a->body.error : NULL);
    free(c);
}

/* It has no link: all its traffic goes through silt-proxy. */
static void on_captive_counted(void *context, const struct silt_egress_counts *counts)
{
    struct counting *c = context;
    if (counts != NULL) {
        c->link.sent_bytes = counts->sent_bytes;
        c->link.received_bytes = counts->received_bytes;
    }
    c->link.mode = SILT_NET_CAPTIVE;
    on_proxy_counted(c, counts);
}

static void count_captive(struct silt_sandbox *s, struct counting *c)
{
    if (silt_sandbox_is_up(s)) {
        silt_egress_count(s, on_captive_counted, c);
        return;
    }
    c->on_counted(c->context, NULL, NULL);
    free(c);
}

void silt_network_count(struct silt_sandbox *s, silt_network_counted *on_counted, void *context)
{
    struct counting *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    *c = (struct counting){
        .registry = s->registry, .slot = s->row.slot, .on_counted = on_counted, .context = context};
    if (s->row.network == SILT_NET_CAPTIVE) {
        count_captive(s, c);
        return;
    }
    struct silt_priv_request q = {.op = SILT_PRIV_NETSTAT, .slot = s->row.slot};
    silt_priv_ask(s->registry->priv, &q, NULL, 0, on_counters, c);
}
