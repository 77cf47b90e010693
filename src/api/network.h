/* SPDX-License-Identifier: Apache-2.0 */
/* network: what a body says about a sandbox's network. */
#pragma once

#include "api/api.h"

struct silt_api_network {
    enum silt_net_mode mode;
    silt_slice allow; /* rules, one a line, in the arena; with mode allow */
};

extern const char *const silt_api_network_modes[SILT_NET_MODE_MAX];

/* {"mode": ..., "allow": [...]}, or absent: *ret keeps its value. False: refused. `allow` is how
 * the caller calls that field. */
bool silt_api_network_read(struct silt_call *c, const struct silt_json *object, const char *allow,
                           struct silt_api_network *ret);
/* SILT_UNAVAILABLE and SILT_TIMEOUT of the network, and all others. */
void silt_api_network_refuse(struct silt_http_request *r, const struct silt_error *e);
