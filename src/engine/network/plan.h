/* SPDX-License-Identifier: Apache-2.0 */
/* plan: the address plan of an instance. A link has a number; its name, interface index and
 * addresses are computed from the number, so nothing has to be stored. */
#pragma once

#include "base/error.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SILT_PLAN_LINK_FIRST = 2, /* 0 is the network address, 1 the gateway */
    /* of the links' interface indexes: far above those the kernel assigns */
    SILT_PLAN_INDEX_BASE = 1 << 20,
    SILT_PLAN_UPLINK_BITS4 = 31,
    SILT_PLAN_UPLINK_BITS6 = 64,
    SILT_PLAN_UPLINK_GROUP = 100, /* in the gateway; the groups of links are their modes */
};

/* Names of the uplink's two ends: in the outer namespace and in the gateway. */
#define SILT_PLAN_UPLINK "up"
#define SILT_PLAN_LINK_PREFIX "v"

typedef struct {
    int family; /* AF_INET, AF_INET6 */
    uint8_t bytes[16];
} silt_ip;

struct silt_plan {
    silt_ip pool4, pool6; /* address ranges of the sandboxes, host part zero */
    uint32_t links;       /* link numbers are below this */
    uint8_t block;        /* of the uplink's addresses; unique per instance on a machine */
    bool ipv6;            /* the kernel supports it */
};

/* Parses "10.0.0.0/8"; bits after the prefix must be zero. */
int silt_plan_network(const char *text, int family, silt_ip *ret, unsigned *ret_bits,
                      struct silt_error *e);

/* `pool4`: "10.210.0.0/16", /8 to /24; `pool6`: "fd73:696c:7400::/64", up to /96. */
int silt_plan_make(const char *pool4, const char *pool6, uint32_t block, struct silt_plan *ret,
                   struct silt_error *e);

/* `number` 1 is the gateway's address on every link. */
silt_ip silt_plan_ip(const struct silt_plan *p, int family, uint32_t number);
silt_ip silt_plan_uplink(const struct silt_plan *p, int family, bool outside);
/* The number of the link with this address; 0: no such link. */
uint32_t silt_plan_number(const struct silt_plan *p, const silt_ip *ip);
void silt_plan_link_name(uint32_t number, char out[IF_NAMESIZE]);
static inline uint32_t silt_plan_link_index(uint32_t number)
{
    return SILT_PLAN_INDEX_BASE + number;
}

static inline int silt_ip_bits(int family)
{
    return family == 2 /* AF_INET */ ? 32 : 128;
}
