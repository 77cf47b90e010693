/* SPDX-License-Identifier: Apache-2.0 */
/* dns_pins: the addresses that a sandbox was given for each name, and until when they count. A
 * name may be reached only at an address it resolved to. */
#pragma once

#include "base/list.h"
#include "proxy/policy/policy.h"

enum {
    SILT_DNS_PINS_MAX = 1024,        /* of one sandbox; the oldest is evicted */
    SILT_DNS_PINS_ALL_MAX = 1 << 17, /* of all */
    SILT_DNS_PINS_FEW = 16, /* when places are scarce, a sandbox with this many evicts its own */
    SILT_DNS_PINS_LEAST_S = 300, /* minimum lifetime of a pin, whatever the TTL */
    SILT_DNS_PINS_MOST_S = 3600, /* maximum TTL that is passed on */
    SILT_DNS_PINS_GRACE_S = 60,  /* a connection may begin a moment after its answer has expired */
};

struct silt_dns_pins {
    struct silt_link list; /* oldest first */
    size_t count;
    size_t *all; /* borrowed: of all sandboxes */
};

void silt_dns_pins_init(struct silt_dns_pins *p, size_t *all);
void silt_dns_pins_fini(struct silt_dns_pins *p);
void silt_dns_pins_add(struct silt_dns_pins *p, silt_slice name, const silt_ip_prefix *address,
                       uint32_t ttl_s, int64_t now_ms);
bool silt_dns_pins_has(const struct silt_dns_pins *p, silt_slice name,
                       const silt_ip_prefix *address, int64_t now_ms);
/* Does the policy allow some name that is pinned to this address? */
enum silt_policy_verdict silt_dns_pins_reach(const struct silt_dns_pins *p,
                                             const struct silt_policy *policy,
                                             const silt_ip_prefix *address, uint16_t port,
                                             int64_t now_ms);
void silt_dns_pins_prune(struct silt_dns_pins *p,
                         const struct silt_policy *policy); /* removes those it forbids */
