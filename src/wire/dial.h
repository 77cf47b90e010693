/* SPDX-License-Identifier: Apache-2.0 */
/* dial: silt-proxy lives where the machine's resolvers are, its connections must leave from the
 * gate, whose rules bind them too. A process of the same program lives there and does one thing:
 * it answers each request with fresh TCP sockets, which belong to the gate for ever. */
#pragma once

#include <stdint.h>

enum { SILT_DIAL_MAX = 16 }; /* sockets of one request */

struct silt_dial_request {
    uint32_t family; /* AF_INET, AF_INET6 */
    uint32_t count;
};

/* Descriptors: `count` sockets, non-blocking; fewer when there is no room for more. */
struct silt_dial_answer {
    uint32_t family;
    uint32_t count;
};
