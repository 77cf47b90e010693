/* SPDX-License-Identifier: Apache-2.0 */
/* net: a sandbox's network namespace. It belongs to the machine's user namespace, so that root
 * inside has no rights over it, and is made ahead of time: making one is the dearest step of a
 * create. Where there is a gate it has a link into it, which dies with it. */
#pragma once

#include "engine/rtnl.h"
#include "wire/priv.h"

struct silt_net {
    int ns;         /* -1: nothing here */
    int sysfs;      /* a detached mount of the sysfs that belongs to it */
    uint32_t index; /* of its link, at both ends; 0: it has none */
    bool captive;   /* it leads nowhere but to silt-proxy's sockets inside (engine/captive.h) */
};

/* The way into the gate; each worker has its own. */
struct silt_net_gate {
    int ns;                  /* -1: there is none, and a sandbox has loopback only */
    int home;                /* the caller's own network namespace */
    struct silt_rtnl inside; /* socket in the gate */
    struct silt_plan plan;
    uint32_t mtu;
    uint32_t next; /* number of a link to try first */
};

/* ns, home and plan are set. */
int silt_net_gate_open(struct silt_net_gate *g, struct silt_error *e);

/* Loopback is up, low ports and ping need no capability; the link is there and in this mode. Leaves
 * the caller at home. */
int silt_net_make(struct silt_net_gate *g, enum silt_net_mode mode, struct silt_net *ret,
                  struct silt_error *e);
void silt_net_close(struct silt_net *n);

/* Of one that no process is in yet. Fine when it has no link. */
int silt_net_set_mode(struct silt_net_gate *g, const struct silt_net *n, enum silt_net_mode mode,
                      struct silt_error *e);
static inline uint32_t silt_net_link(const struct silt_net *n) /* its number; 0: it has none */
{
    return n->index == 0 ? 0 : n->index - SILT_PLAN_INDEX_BASE;
}
/* Of a running sandbox, by its first process. What the new mode forbids is cut: from the answer on
 * no packet of it passes, and connections inside have broken off. SILT_UNAVAILABLE: it has no
 * link. `ret_link`: the number of its link. */
int silt_net_change_mode(struct silt_net_gate *g, int pidfd, enum silt_net_mode mode,
                         uint32_t *ret_link, struct silt_error *e);
int silt_net_counters(struct silt_net_gate *g, int pidfd, struct silt_priv_netstat *ret,
                      uint32_t *ret_link, struct silt_error *e);
