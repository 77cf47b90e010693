/* SPDX-License-Identifier: Apache-2.0 */
/* port: the validated parameters of a request that waits for a port. Runs in siltd; invalid ones
 * are answered with 400. */
#pragma once

#include "api/core/api.h"
#include "sandbox/process/port_wait.h"

/* Read from the body, or from the query of a GET. False: already answered with an error. */
struct silt_port_ask {
    struct silt_port_request request; /* slices live as long as the HTTP request */
    silt_slice process;               /* process id; empty: none */
    uint32_t timeout_ms;              /* of a stream of events; 0: none */
};
bool silt_port_ask_read(struct silt_call *c, struct silt_port_ask *ret);
