/* SPDX-License-Identifier: Apache-2.0 */
/* confine: siltd's seccomp filter, applied once it is set up. An allow-list: use the sockets it was
 * given, wait, keep its database, exit. It cannot start programs, processes or threads, map code,
 * create sockets other than local pairs, mount, or enter namespaces. Failure to apply it stops
 * siltd. */
#pragma once

#include "base/error.h"

int silt_confine(struct silt_error *e);
