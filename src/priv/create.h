/* SPDX-License-Identifier: Apache-2.0 */
/* create: starts a sandbox from a create request. Runs in a worker of silt-priv. */
#pragma once

#include "priv/helper.h"

/* Size limit of /dev/shm. */
static inline uint64_t silt_priv_shm_bytes(const struct silt_priv_limits *l)
{
    return l->memory_bytes / 2;
}
int silt_priv_check_limits(const struct silt_priv_limits *l, struct silt_error *e);
int silt_priv_check_network(uint32_t mode, struct silt_error *e);
int silt_priv_check_hostname(const char name[SILT_HOSTNAME_SIZE], struct silt_error *e);

struct silt_priv_made {
    int pidfd;     /* owned by the caller */
    uint32_t link; /* number of its network link; 0: no link */
};

/* `channel` is borrowed. On failure nothing is left, except the files of a sandbox that already
 * existed. */
int silt_priv_create(struct silt_priv_helper *u, uint32_t slot, const struct silt_priv_create *c,
                     int channel, struct silt_priv_made *ret, struct silt_error *e);
/* Creates one network namespace ahead of time, if one is missing. */
bool silt_priv_refill(struct silt_priv_helper *u);
