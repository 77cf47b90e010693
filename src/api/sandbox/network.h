/* SPDX-License-Identifier: Apache-2.0 */
/* network: reads the network settings in a request body. Runs in siltd; invalid settings are
 * answered with 400. */
#pragma once

#include "api/core/api.h"

struct silt_api_network {
    enum silt_net_mode mode;
    silt_slice allow; /* one rule per line, in the arena; only with mode allow */
};

extern const char *const silt_api_network_modes[SILT_NET_MODE_MAX];

/* Reads {"mode": ..., "allow": [...]}; *ret is unchanged if absent. False: already answered with an
 * error. `allow` is the client's name of that member. */
bool silt_api_network_read(struct silt_call *c, const struct silt_json *object, const char *allow,
                           struct silt_api_network *ret);
/* Answers SILT_UNAVAILABLE, SILT_CONFLICT and SILT_TIMEOUT as errors of the network; the rest as
 * silt_api_refuse_error does. */
void silt_api_network_refuse(struct silt_http_request *r, const struct silt_error *e);
