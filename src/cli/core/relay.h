/* SPDX-License-Identifier: Apache-2.0 */
/* relay: TLS for the client. The handshake happens here; then a child passes bytes between the
 * connection and a socket pair, so that everything else reads and writes plain bytes. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

/* Takes fd, a connected non-blocking socket. *ret_fd speaks in plain bytes; the child *ret_pid ends
 * with it and is the caller's to wait for. authorities: a PEM file, or NULL. */
int silt_relay_start(int fd, const char *host, const char *authorities, int timeout_ms, int *ret_fd,
                     pid_t *ret_pid, struct silt_error *e);
