/* SPDX-License-Identifier: Apache-2.0 */
/* net: a sandbox's network namespace. It belongs to the machine's user namespace, so root inside
 * has no rights over it. silt-priv's workers create it ahead of time: it is the most expensive step
 * of a create. With a gateway it has a link into it, which is destroyed with the namespace. */
#pragma once

#include "engine/network/rtnl.h"
#include "wire/priv.h"

struct silt_net {
    int ns;         /* -1: empty */
    int sysfs;      /* detached mount of the namespace's sysfs */
    uint32_t index; /* of its link, the same at both ends; 0: no link */
    bool captive;   /* leads only to silt-proxy's sockets inside (engine/network/captive.h) */
};

/* A worker's access to the gateway; each worker has its own. */
struct silt_net_gate {
    int ns;                  /* -1: no gateway, sandboxes have loopback only */
    int home;                /* the caller's own network namespace */
    struct silt_rtnl inside; /* netlink socket in the gateway */
    struct silt_plan plan;
    uint32_t mtu;
    uint32_t next; /* link number to try first */
};

/* ns, home and plan must be set. */
int silt_net_gate_open(struct silt_net_gate *g, struct silt_error *e);

/* Creates a namespace: loopback is up, low ports and ping need no capability, and the link exists
 * in the given mode. The caller is back in its own namespace afterwards. */
int silt_net_make(struct silt_net_gate *g, enum silt_net_mode mode, struct silt_net *ret,
                  struct silt_error *e);
void silt_net_close(struct silt_net *n);

/* For a namespace that has no process yet. Succeeds if it has no link. */
int silt_net_set_mode(struct silt_net_gate *g, const struct silt_net *n, enum silt_net_mode mode,
                      struct silt_error *e);
static inline uint32_t silt_net_link(const struct silt_net *n) /* the link's number; 0: no link */
{
    return n->index == 0 ? 0 : n->index - SILT_PLAN_INDEX_BASE;
}
/* Changes the mode of a running sandbox, given by the pidfd of its first process. Traffic that the
 * new mode forbids is cut off: once this returns, none of its packets pass and its connections
 * inside are reset. SILT_UNAVAILABLE: the sandbox has no link. `ret_link`: the number of its
 * link. */
int silt_net_change_mode(struct silt_net_gate *g, int pidfd, enum silt_net_mode mode,
                         uint32_t *ret_link, struct silt_error *e);
int silt_net_counters(struct silt_net_gate *g, int pidfd, struct silt_priv_netstat *ret,
                      uint32_t *ret_link, struct silt_error *e);
