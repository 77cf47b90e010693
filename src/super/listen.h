/* SPDX-License-Identifier: Apache-2.0 */
/* listen: the listening sockets of the API. Opened in silt-super, so that siltd needs no privilege
 * and clients are not refused while siltd restarts: connections wait in the backlog. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { SILT_LISTEN_TEXT = 64 };

/* `address`: "127.0.0.1:7458" or "[::1]:7458". ret_text is the bound address, with the real port if
 * 0 was given. Logs a warning if the socket is reachable from outside without TLS. */
int silt_listen_open(const char *address, bool encrypted, int *ret_fd,
                     char ret_text[SILT_LISTEN_TEXT], struct silt_error *e);
/* The address of a socket that was opened before. */
int silt_listen_text(int fd, bool encrypted, char ret_text[SILT_LISTEN_TEXT], struct silt_error *e);
/* Listens on 127.0.0.1; port 0: any free port. A taken or privileged port is refused at once. */
int silt_listen_loopback(uint32_t port, int *ret_fd, struct silt_error *e);
/* Listens on a unix socket at `path` with that mode; `group` is a name or a number, "": root's.
 * Replaces an existing socket that nobody listens on. */
int silt_listen_unix(const char *path, uint32_t mode, const char *group, int *ret_fd,
                     struct silt_error *e);
