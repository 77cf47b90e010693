/* SPDX-License-Identifier: Apache-2.0 */
/* confine: the system calls siltd will never need are taken away from it, once it is set up: no new
 * programs or processes, no mounts, no namespaces, no outgoing connections. */
#pragma once

#include "base/error.h"

int silt_confine(struct silt_error *e);
