/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_use: measures the kernel memory of a guest's TCP sockets and ends the largest ones. A control
 * group is charged for a connection only when it is accepted, so unaccepted connections are looked
 * up here, in the guest's network namespace. Runs in silt-priv's TCP watcher; one object serves all
 * namespaces in turn. */
#pragma once

#include "base/error.h"
#include "base/slice.h"
#include "engine/network/sock_list.h"

#include <stdint.h>

enum { SILT_TCP_PORTS = 65536, SILT_TCP_WEIGHTS = 64 };

/* Unaccepted connections at one port. */
struct silt_tcp_port {
    uint64_t memory; /* of those that the kernel lists */
    uint64_t receive_max;
    uint32_t waiting; /* all of them, listed or not */
    uint32_t listed;
};

struct silt_tcp_use {
    struct silt_sock_list diag;
    uint32_t uid_first; /* sockets of other users, such as silt-proxy's, are left alone */
    int64_t until_ms;
    struct silt_tcp_port ports[SILT_TCP_PORTS];
    uint16_t busy[SILT_TCP_PORTS]; /* ports with unaccepted connections */
    uint32_t nbusy;
    /* results for the namespace that was examined last */
    uint64_t waiting; /* bytes of listed, unaccepted connections */
    /* upper bound for connections that were reset while waiting: the kernel no longer lists them */
    uint64_t hidden_max;
    uint64_t hidden; /* the caller's estimate of what they really hold */
    /* bytes of accepted connections, by the logarithm of their size */
    uint64_t weights[SILT_TCP_WEIGHTS];
    bool weighed;
    /* while sockets are being ended */
    uint64_t least, wanted, covered;
    uint32_t ended_connections, ended_listeners;
};

/* From begin to end the caller is in the guest's network namespace. `uid_first`: the guest's first
 * id. */
void silt_tcp_use_begin(struct silt_tcp_use *u, uint32_t uid_first);
void silt_tcp_use_look(struct silt_tcp_use *u);
/* Ends the largest sockets until `bytes` are covered. A connection is reset; a listener counts with
 * all its unaccepted connections and is closed for its holder. */
void silt_tcp_use_reset(struct silt_tcp_use *u, uint64_t bytes);
void silt_tcp_use_end(struct silt_tcp_use *u);

/* Parses /proc/net/sockstat: pages used by all TCP sockets of the machine. */
int silt_tcp_use_machine(silt_slice sockstat, uint64_t *ret_pages, struct silt_error *e);
