/* SPDX-License-Identifier: Apache-2.0 */
/* sock_diag: asks the kernel (NETLINK_SOCK_DIAG) which user owns a TCP socket on loopback, and
 * whether a port has a listener. siltd and silt-proxy open the netlink socket before they are
 * confined, because their seccomp filters forbid it later. */
#pragma once

#include "base/error.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

int silt_sock_diag_open(int *ret_fd, struct silt_error *e);
/* The uid of the peer's process. False: unknown, or the peer has closed. */
bool silt_sock_diag_peer(int diag, int connection, uint32_t *ret_uid);
/* Whether the peer of a connection that has sent data is root or `uid`. Also true if the peer has
 * closed: nobody reads the response there. */
bool silt_sock_diag_is_of(int diag, int connection, uint32_t uid);
/* Whether the port has a listener on 127.0.0.1. Also true if the kernel does not say. */
bool silt_sock_diag_listens(int diag, uint16_t port);
