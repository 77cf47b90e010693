/* SPDX-License-Identifier: Apache-2.0 */
/* listen: the API's listening socket, made here so that siltd needs no right and a restart of siltd
 * refuses nobody: connections wait in the backlog meanwhile. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { SILT_LISTEN_TEXT = 64 };

/* "127.0.0.1:7458" or "[::1]:7458"; the address in use, with the port that was given for 0, comes
 * back in ret_text. Whoever can be reached from outside unencrypted is warned of in the log. */
int silt_listen_open(const char *address, bool encrypted, int *ret_fd, char ret_text[SILT_LISTEN_TEXT],
                     struct silt_error *e);
/* On 127.0.0.1; port 0: a free one. One that is taken, or is root's, is refused at once. */
int silt_listen_loopback(uint32_t port, int *ret_fd, struct silt_error *e);
/* A unix socket at `path`, with that mode; `group` is a name or a number, "": root's. What was there before goes,
 * if it is a socket that nobody answers at. */
int silt_listen_unix(const char *path, uint32_t mode, const char *group, int *ret_fd,
                     struct silt_error *e);
