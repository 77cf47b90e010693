/* SPDX-License-Identifier: Apache-2.0 */
/* net: a sandbox's network namespace. It belongs to the machine's user namespace, so that root
 * inside has no rights over it, and is made ahead of time: making one is the dearest step of a
 * create. */
#pragma once

#include "base/error.h"

struct silt_net {
    int ns;    /* -1: nothing here */
    int sysfs; /* a detached mount of the sysfs that belongs to it */
};

/* Loopback is up, low ports and ping need no capability. Leaves the caller in `home`. */
int silt_net_make(int home, struct silt_net *ret, struct silt_error *e);
void silt_net_close(struct silt_net *n);
