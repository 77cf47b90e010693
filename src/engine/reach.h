/* SPDX-License-Identifier: Apache-2.0 */
/* reach: a socket in a sandbox's network, connected to a port of it. It belongs to that network for
 * life, whoever holds it; the caller is at home again before it connects. */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* By the sandbox's first process. 127.0.0.1, else ::1. Never waits: the socket is non-blocking and
 * connected, or about to be. SILT_UNAVAILABLE with e->sys == ECONNREFUSED: nobody listens. `home`:
 * the caller's own network namespace. */
int silt_reach_port(int home, int pidfd, uint16_t port, int *ret_fd, struct silt_error *e);
