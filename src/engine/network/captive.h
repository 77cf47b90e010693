/* SPDX-License-Identifier: Apache-2.0 */
/* captive: a network namespace without a way out. Every address is local to its loopback, so
 * outgoing packets arrive in the same namespace. A small rule set, which root inside cannot change,
 * redirects TCP connections and DNS queries to sockets created here for silt-proxy, and drops the
 * rest. Runs in silt-priv's workers. */
#pragma once

#include "base/error.h"
#include "engine/network/plan.h"
#include "wire/priv.h"

enum { SILT_CAPTIVE_SOCKETS = 2 * SILT_CAPTIVE_SOCKET_MAX };

/* Sets up the caller's network namespace, which is new and has its loopback up. Runs nft: about 10
 * ms. */
int silt_captive_furnish(bool ipv6, struct silt_error *e);

/* Creates the sockets (enum silt_captive_socket) in a running sandbox, given by the pidfd of its
 * first process; `home`: the caller's own network namespace. SILT_CONFLICT: they exist already.
 * SILT_UNAVAILABLE: the sandbox is not captive. */
int silt_captive_open(int home, int pidfd, bool ipv6, int ret_fds[SILT_CAPTIVE_SOCKETS],
                      int *ret_count, struct silt_error *e);
