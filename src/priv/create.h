/* SPDX-License-Identifier: Apache-2.0 */
/* create: from a request to a running sandbox. */
#pragma once

#include "priv/unit.h"

/* The most that /dev/shm holds. */
static inline uint64_t silt_priv_shm_bytes(const struct silt_priv_limits *l)
{
    return l->memory_bytes / 2;
}
int silt_priv_check_limits(const struct silt_priv_limits *l, struct silt_error *e);
int silt_priv_check_network(uint32_t mode, struct silt_error *e);
int silt_priv_check_hostname(const char name[SILT_HOSTNAME_SIZE], struct silt_error *e);

struct silt_priv_made {
    int pidfd;     /* the caller's */
    uint32_t link; /* number of its network link; 0: it has none */
};

/* `channel` is borrowed. On failure nothing is left, beside the files of a sandbox that had some.
 */
int silt_priv_create(struct silt_priv_unit *u, uint32_t slot, const struct silt_priv_create *c,
                     int channel, struct silt_priv_made *ret, struct silt_error *e);
/* Makes network namespaces ahead of time: one more, if one is missing. */
bool silt_priv_refill(struct silt_priv_unit *u);
