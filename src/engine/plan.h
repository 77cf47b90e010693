/* SPDX-License-Identifier: Apache-2.0 */
/* plan: which addresses an instance uses. A link has a number; everything else about it (name,
 * index, addresses) follows from the number, so that nobody has to remember it. */
#pragma once

#include "base/error.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SILT_PLAN_LINK_FIRST = 2,       /* 0 is the network itself, 1 the gateway */
    SILT_PLAN_INDEX_BASE = 1 << 20, /* of links' interface indexes: far above the kernel's own */
    SILT_PLAN_UPLINK_BITS4 = 31,
    SILT_PLAN_UPLINK_BITS6 = 64,
    SILT_PLAN_UPLINK_GROUP = 100, /* in the gate; groups of links are their modes */
};

/* The names of the ends of the uplink: outside, and in the gate. */
#define SILT_PLAN_UPLINK "up"
#define SILT_PLAN_LINK_PREFIX "v"

typedef struct {
    int family; /* AF_INET, AF_INET6 */
    uint8_t bytes[16];
} silt_ip;

struct silt_plan {
    silt_ip pool4, pool6; /* the networks of the sandboxes, host part zero */
    uint32_t links;       /* numbers are below it */
    uint8_t block;        /* of the uplink's addresses: each instance of a machine has its own */
    bool ipv6;            /* the kernel has it */
};

/* "10.0.0.0/8"; no bit behind the prefix. */
int silt_plan_network(const char *text, int family, silt_ip *ret, unsigned *ret_bits,
                      struct silt_error *e);

/* `pool4`: "10.210.0.0/16", /8 to /24; `pool6`: "fd73:696c:7400::/64", up to /96. */
int silt_plan_make(const char *pool4, const char *pool6, uint32_t block, struct silt_plan *ret,
                   struct silt_error *e);

/* `number` 1 is the gateway's address on every link. */
silt_ip silt_plan_ip(const struct silt_plan *p, int family, uint32_t number);
silt_ip silt_plan_uplink(const struct silt_plan *p, int family, bool outside);
/* The number of the link with this address; 0: it is none's. */
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
