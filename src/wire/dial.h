/* SPDX-License-Identifier: Apache-2.0 */
/* dial: silt-proxy runs in the machine's network namespace, where the resolvers are, but its
 * connections must leave from the gateway, so that the gateway's rules apply to them. A second
 * process of the same program runs in the gateway and answers each request with new TCP sockets,
 * which stay in the gateway's namespace. */
#pragma once

#include <stdint.h>

enum { SILT_DIAL_MAX = 16 }; /* sockets per request */

struct silt_dial_request {
    uint32_t family; /* AF_INET, AF_INET6 */
    uint32_t count;
};

/* Descriptors: `count` non-blocking sockets; fewer than requested if there are not enough
 * resources. */
struct silt_dial_answer {
    uint32_t family;
    uint32_t count;
};
