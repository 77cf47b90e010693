/* SPDX-License-Identifier: Apache-2.0 */
/* rtnl: links, addresses and routes of one network namespace, changed over rtnetlink, one request
 * and one reply each. A socket belongs to the namespace it was opened in. */
#pragma once

#include "engine/network/plan.h"

struct silt_rtnl {
    int fd; /* -1: closed */
    uint32_t seq;
};

/* Opened in the caller's current network namespace. */
int silt_rtnl_open(struct silt_rtnl *r, struct silt_error *e);
void silt_rtnl_close(struct silt_rtnl *r);

/* One end of a new veth pair. */
struct silt_rtnl_end {
    const char *name;
    uint32_t index; /* 0: chosen by the kernel, at both ends */
    uint32_t group;
    int ns; /* -1: the socket's namespace */
};

/* Creates a veth pair. The first end is up; raise the other one afterwards, since it has no peer
 * yet while it is created. Both ends get the same hardware address and no ARP: the kernel then uses
 * the device's address for every neighbour, so there are no neighbour queries, nothing to spoof,
 * and no wait for duplicate address detection. e->sys is EEXIST if a name or an index is taken. */
int silt_rtnl_pair(struct silt_rtnl *r, const struct silt_rtnl_end ends[2], uint32_t mtu,
                   struct silt_error *e);
int silt_rtnl_address(struct silt_rtnl *r, uint32_t index, silt_ip ip, unsigned bits,
                      struct silt_error *e);
/* `to` NULL: default route; `via` NULL: on-link. */
int silt_rtnl_route(struct silt_rtnl *r, uint32_t index, const silt_ip *to, const silt_ip *via,
                    struct silt_error *e);
/* Makes every address local to this device (loopback); outgoing connections use the source address
 * `own`. */
int silt_rtnl_own_all(struct silt_rtnl *r, uint32_t index, const silt_ip *own,
                      struct silt_error *e);
int silt_rtnl_set_group(struct silt_rtnl *r, uint32_t index, uint32_t group, struct silt_error *e);
int silt_rtnl_raise(struct silt_rtnl *r, uint32_t index, struct silt_error *e);
/* Takes about 20 ms in the kernel: do not call it while a client waits. */
int silt_rtnl_delete(struct silt_rtnl *r, const char *name, struct silt_error *e);

struct silt_rtnl_counters {
    uint64_t rx_bytes, rx_packets, tx_bytes, tx_packets; /* as seen from that end of the link */
    uint32_t group;
    uint32_t mtu;
};
int silt_rtnl_counters(struct silt_rtnl *r, uint32_t index, struct silt_rtnl_counters *ret,
                       struct silt_error *e);
