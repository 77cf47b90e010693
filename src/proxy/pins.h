/* SPDX-License-Identifier: Apache-2.0 */
/* pins: which addresses a sandbox was told for which names, and for how long that counts. A name
 * is reached at an address that it was answered with, and at no other. */
#pragma once

#include "base/list.h"
#include "proxy/policy.h"

enum {
    SILT_PINS_MAX = 1024,        /* of one sandbox; the oldest makes room */
    SILT_PINS_ALL_MAX = 1 << 17, /* of all */
    SILT_PINS_FEW = 16,          /* in a crowd, who has these makes room itself */
    SILT_PINS_LEAST_S = 300,     /* who asked keeps the address for a while, whatever was said */
    SILT_PINS_MOST_S = 3600,     /* answers are told to last no longer than this */
    SILT_PINS_GRACE_S = 60,      /* a connection may begin a moment after its answer has expired */
};

struct silt_pins {
    struct silt_link list; /* oldest first */
    size_t count;
    size_t *all; /* borrowed: of all sandboxes */
};

void silt_pins_init(struct silt_pins *p, size_t *all);
void silt_pins_fini(struct silt_pins *p);
void silt_pins_add(struct silt_pins *p, silt_slice name, const silt_prefix *address, uint32_t ttl_s,
                   int64_t now_ms);
bool silt_pins_has(const struct silt_pins *p, silt_slice name, const silt_prefix *address,
                   int64_t now_ms);
/* Is some name at this address that the policy allows? */
enum silt_policy_verdict silt_pins_reach(const struct silt_pins *p,
                                         const struct silt_policy *policy,
                                         const silt_prefix *address, uint16_t port, int64_t now_ms);
void silt_pins_prune(struct silt_pins *p,
                     const struct silt_policy *policy); /* those it forbids go */
