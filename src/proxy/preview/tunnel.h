/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel: relays bytes and half-closes between a client that siltd let in and a socket inside a
 * sandbox. Belongs to a route, and is reset with it. */
#pragma once

#include "proxy/preview/routes.h"
#include "proxy/preview/upstream.h"

/* Takes both descriptors, non-blocking ones, which count in the pool. */
void silt_tunnel_start(struct silt_pool *pool, struct silt_route *route, int visitor, int inside);
