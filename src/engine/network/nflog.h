/* SPDX-License-Identifier: Apache-2.0 */
/* nflog: the netlink socket on which the gateway reports packets its rules refused (group 1) and
 * new connections (group 2). Opened here because that takes privileges; read by silt-proxy, which
 * has none. */
#pragma once

#include "base/error.h"

/* Opened in the caller's current network namespace. Non-blocking. */
int silt_nflog_open(int *ret_fd, struct silt_error *e);
