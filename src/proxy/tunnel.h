/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel: a connection that siltd let in, and a socket inside a sandbox: bytes pass both ways as they are, and so do half-closes. It
 * belongs to a route: with that it is reset. */
#pragma once

#include "proxy/routes.h"
#include "proxy/upstream.h"

/* Takes both descriptors, non-blocking ones, which count in the pool. */
void silt_tunnel_start(struct silt_pool *pool, struct silt_route *route, int visitor, int inside);
