/* SPDX-License-Identifier: Apache-2.0 */
/* network_choice: chooses the network mode of a new sandbox: its creator's choice, else the
 * operator's default. Runs in siltd. */
#pragma once

#include "sandbox/core/sandbox.h"

/* SILT_UNAVAILABLE: this machine cannot provide the requested mode. */
int silt_network_check(const struct silt_registry *r, const struct silt_sandbox_options *o,
                       struct silt_error *e);
void silt_network_choose(struct silt_sandbox *s, const struct silt_sandbox_options *o);
/* The mode a sandbox is created or claimed in. Mode allow starts closed: silt-proxy must get the
 * rules first. */
enum silt_net_mode silt_network_birth_mode(const struct silt_sandbox *s);
