/* SPDX-License-Identifier: Apache-2.0 */
/* captive: a network namespace that leads nowhere. Every address of the world is an address of its own loopback, so that whatever
 * leaves a program inside comes in again at once; one small rule set, which root inside has no rights over, hands connections and
 * questions of names to sockets that are made here for silt-proxy, and drops the rest. */
#pragma once

#include "base/error.h"
#include "engine/plan.h"
#include "wire/priv.h"

enum { SILT_CAPTIVE_SOCKETS = 2 * SILT_CAPTIVE_SOCKET_MAX };

/* In the caller's namespace, which is new and whose loopback is up. Runs nft: some ten milliseconds. */
int silt_captive_furnish(bool ipv6, struct silt_error *e);

/* The sockets (enum silt_captive_socket) of a running sandbox, by its first process; `home`: the caller's own network namespace.
 * SILT_CONFLICT: somebody has them already. SILT_UNAVAILABLE: it is not captive. */
int silt_captive_open(int home, int pidfd, bool ipv6, int ret_fds[SILT_CAPTIVE_SOCKETS], int *ret_count,
                      struct silt_error *e);
