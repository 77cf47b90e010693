/* SPDX-License-Identifier: Apache-2.0 */
/* diag: what the kernel knows about TCP sockets of this machine's loopback (sock_diag): whose they are, and whether somebody listens.
 * siltd and silt-proxy may make no such socket once they are confined, so this one is opened before. */
#pragma once

#include "base/error.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

int silt_diag_open(int *ret_fd, struct silt_error *e);
/* The uid of the process at the other end of a connection; false: it is not known, or that end is closed. */
bool silt_diag_peer(int diag, int connection, uint32_t *ret_uid);
/* Whether root or `uid` is at the other end of a connection that something came from. Also when that end is closed: nobody reads there what is sent. */
bool silt_diag_is_of(int diag, int connection, uint32_t uid);
/* Whether somebody listens on 127.0.0.1 there. Also when that cannot be found out. */
bool silt_diag_listens(int diag, uint16_t port);
