/* SPDX-License-Identifier: Apache-2.0 */
/* network: what a body says about a sandbox's network. */
#pragma once

#include "api/api.h"

/* {"mode": ...}, or absent: *ret keeps its value. False: refused. */
bool silt_api_network_read(struct silt_call *c, const struct silt_json *object,
                           enum silt_net_mode *ret);
