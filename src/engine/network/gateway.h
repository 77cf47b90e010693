/* SPDX-License-Identifier: Apache-2.0 */
/* gateway: the instance's own network namespace for routing. The links of all sandboxes end in it;
 * one uplink connects it to the namespace the daemon was started in. Routes, rules and tracked
 * connections are kept inside it, so the machine's own network stays unchanged except for what
 * uplink.h needs. silt-super creates it and holds its descriptor, so it survives a restart of
 * silt-priv; when the last holder exits, the kernel removes it with all its links. */
#pragma once

#include "engine/network/uplink.h"
#include "wire/super.h"

struct silt_gateway_config {
    const char *instance;
    const char *pool4, *pool6; /* address ranges of the sandboxes */
    const char *open;          /* private networks that sandboxes may reach */
    const char *run;           /* directory of the file that records which settings to restore */
    uint32_t block;            /* below 256, unique among the instances of this machine */
    uint32_t connections;      /* limit per sandbox */
    /* threshold for all sandboxes together (silt_rules_crowd); 0: derived from the size of
     * conntrack's table */
    uint32_t connections_all;
};

enum { SILT_GATEWAY_SOCKETS = 2 * SILT_SUPER_SOCKET_MAX };

struct silt_gateway {
    int ns;  /* -1: no gateway */
    int log; /* netlink socket for the log of the rules (engine/network/nflog.h) */
    int sockets[SILT_GATEWAY_SOCKETS]; /* on the gateway's addresses: first IPv4, then IPv6 */
    int nsockets;
    struct silt_plan plan;
    struct silt_uplink outside;
};

/* Removes what an earlier instance of this name left behind, then creates the gateway.
 * SILT_UNAVAILABLE: this machine does not support it. On failure nothing is left. */
int silt_gateway_open(struct silt_gateway *g, const struct silt_gateway_config *c,
                      struct silt_error *e);
/* For a gateway that an earlier program of this process opened: its descriptors are in *g. */
int silt_gateway_resume(struct silt_gateway *g, const struct silt_gateway_config *c,
                        struct silt_error *e);
void silt_gateway_close(struct silt_gateway *g); /* fine if there is no gateway */

/* When the machine's routes change, the descriptor (owned by the caller) becomes readable. Drain it
 * with silt_devices_heard, wait a moment and call silt_gateway_follow. */
int silt_gateway_listen(const struct silt_gateway *g, int *ret_fd, struct silt_error *e);
int silt_gateway_follow(struct silt_gateway *g, struct silt_error *e);
