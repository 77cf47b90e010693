/* SPDX-License-Identifier: Apache-2.0 */
/* rtnl: links, addresses and routes of one network namespace, asked for by rtnetlink, one message
 * and one answer each. A socket belongs for life to the namespace it was opened in. */
#pragma once

#include "engine/plan.h"

struct silt_rtnl {
    int fd; /* -1: closed */
    uint32_t seq;
};

/* In the caller's namespace of the moment. */
int silt_rtnl_open(struct silt_rtnl *r, struct silt_error *e);
void silt_rtnl_close(struct silt_rtnl *r);

/* One end of a new pair. */
struct silt_rtnl_end {
    const char *name;
    uint32_t index; /* 0: the kernel's choice, then at both ends */
    uint32_t group;
    int ns; /* -1: here */
};

/* The first end is up; the other one has to be raised: it has no partner yet while it is made. The
 * two ends have one hardware address and no ARP: with that the kernel takes the address of the
 * device for that of everyone behind it, so nobody asks, nobody can lie, and no address waits for
 * duplicates to be found. e->sys is EEXIST when a name or an index is taken. */
int silt_rtnl_pair(struct silt_rtnl *r, const struct silt_rtnl_end ends[2], uint32_t mtu,
                   struct silt_error *e);
int silt_rtnl_address(struct silt_rtnl *r, uint32_t index, silt_ip ip, unsigned bits,
                      struct silt_error *e);
/* `to` NULL: everything; `via` NULL: directly. */
int silt_rtnl_route(struct silt_rtnl *r, uint32_t index, const silt_ip *to, const silt_ip *via,
                    struct silt_error *e);
/* Every address is this device's (loopback's) own; what begins inside has the address `own`. */
int silt_rtnl_own_all(struct silt_rtnl *r, uint32_t index, const silt_ip *own, struct silt_error *e);
int silt_rtnl_set_group(struct silt_rtnl *r, uint32_t index, uint32_t group, struct silt_error *e);
int silt_rtnl_raise(struct silt_rtnl *r, uint32_t index, struct silt_error *e);
/* Waits some 20 ms inside the kernel: never where somebody waits for us. */
int silt_rtnl_delete(struct silt_rtnl *r, const char *name, struct silt_error *e);

struct silt_rtnl_counters {
    uint64_t rx_bytes, rx_packets, tx_bytes, tx_packets; /* as that end of the link sees it */
    uint32_t group;
    uint32_t mtu;
};
int silt_rtnl_counters(struct silt_rtnl *r, uint32_t index, struct silt_rtnl_counters *ret,
                       struct silt_error *e);
