/* SPDX-License-Identifier: Apache-2.0 */
/* create: from a request to a running sandbox. */
#pragma once

#include "priv/unit.h"

int silt_priv_check_limits(const struct silt_priv_limits *l, struct silt_error *e);
int silt_priv_check_network(uint32_t mode, struct silt_error *e);
int silt_priv_check_hostname(const char name[SILT_HOSTNAME_SIZE], struct silt_error *e);

/* `channel` is borrowed. On failure nothing is left, beside the files of a sandbox that had some.
 */
int silt_priv_create(struct silt_priv_unit *u, uint32_t slot, const struct silt_priv_create *c,
                     int channel, int *ret_pidfd, struct silt_error *e);
/* Makes network namespaces ahead of time: one more, if one is missing. */
void silt_priv_refill(struct silt_priv_unit *u);
