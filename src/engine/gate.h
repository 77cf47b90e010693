/* SPDX-License-Identifier: Apache-2.0 */
/* gate: the instance's own routing namespace. All links of sandboxes lead into it; one uplink leads
 * from it to the namespace the daemon was started in. Routes, rules and connections live inside, so
 * that the machine's own network stays as it is, but for what `outside` needs. silt-super makes it
 * and holds it by a descriptor: silt-priv may die and find it again, and when the last holder is
 * gone the kernel removes it with all its links. */
#pragma once

#include "engine/outside.h"
#include "wire/super.h"

struct silt_gate_config {
    const char *instance;
    const char *pool4, *pool6; /* networks of the sandboxes */
    const char *open;          /* private networks that may be reached */
    const char *run;           /* folder for the note of what has to be set back */
    uint32_t block;            /* a number below 256 that no other instance of this machine has */
    uint32_t connections;      /* of one sandbox */
    uint32_t
        connections_all; /* of all, before it is a crowd; 0: by the size of conntrack's table */
};

enum { SILT_GATE_SOCKETS = 2 * SILT_SUPER_SOCKET_MAX };

struct silt_gate {
    int ns;                         /* -1: there is none */
    int log;                        /* netlink: what the rules tell (engine/nflog.h) */
    int sockets[SILT_GATE_SOCKETS]; /* on the gateway's addresses: those of IPv4, then of IPv6 */
    int nsockets;
    struct silt_plan plan;
    struct silt_outside outside;
};

/* What an earlier instance of this name has left is removed first. SILT_UNAVAILABLE: this machine
 * cannot do it. On failure nothing is left. */
int silt_gate_open(struct silt_gate *g, const struct silt_gate_config *c, struct silt_error *e);
void silt_gate_close(struct silt_gate *g); /* fine when there is none */

/* The machine's routes may change: the descriptor can be read when something has (it is the
 * caller's, for silt_devices_heard), and then, a moment later, the gate looks again. */
int silt_gate_listen(const struct silt_gate *g, int *ret_fd, struct silt_error *e);
int silt_gate_follow(struct silt_gate *g, struct silt_error *e);
