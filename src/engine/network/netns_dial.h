/* SPDX-License-Identifier: Apache-2.0 */
/* netns_dial: connects a socket to a port inside a sandbox's network namespace. The socket stays in
 * that namespace whichever process holds it; the caller returns to its own namespace before it
 * connects. Runs in silt-priv's workers. */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* `pidfd`: the sandbox's first process; `home`: the caller's own network namespace. Tries
 * 127.0.0.1, then ::1. Never blocks: the socket is non-blocking and connected or connecting.
 * SILT_UNAVAILABLE with e->sys == ECONNREFUSED: no listener on the port. */
int silt_netns_dial(int home, int pidfd, uint16_t port, int *ret_fd, struct silt_error *e);
