/* SPDX-License-Identifier: Apache-2.0 */
/* port: what a request wants to wait for on a port, checked. */
#pragma once

#include "api/api.h"
#include "sandbox/port.h"

/* From the body, or for a GET from the query. False: refused already. */
struct silt_port_ask {
    struct silt_port_request request; /* slices live as long as the HTTP request */
    silt_slice process;               /* its id; empty: none */
};
bool silt_port_ask_read(struct silt_call *c, const char *process_field, struct silt_port_ask *ret);
