/* SPDX-License-Identifier: Apache-2.0 */
/* confine: what siltd may ask of the kernel once it is set up, a list: to talk through sockets that it was given,
 * to wait, to keep its database, and to end. No programs, processes, threads or code, no sockets of its own making
 * but local pairs, no mounts, no namespaces. */
#pragma once

#include "base/error.h"

int silt_confine(struct silt_error *e);
