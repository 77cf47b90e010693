/* SPDX-License-Identifier: Apache-2.0 */
/* nflog: the socket on which the gate tells what its rules refused (group 1) and which connections
 * began (group 2). Opened here, because that takes rights; read by silt-proxy, which has none. */
#pragma once

#include "base/error.h"

/* In the caller's network namespace of the moment. Non-blocking. */
int silt_nflog_open(int *ret_fd, struct silt_error *e);
