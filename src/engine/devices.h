/* SPDX-License-Identifier: Apache-2.0 */
/* devices: the interfaces that lead to the world: those with a default route, in whichever routing
 * table, of either family. */
#pragma once

#include "base/error.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SILT_DEVICES_MAX = 8 };

struct silt_devices {
    char names[SILT_DEVICES_MAX][IF_NAMESIZE];
    size_t count;
};

/* In the caller's network namespace. What cannot be asked for is not there. */
void silt_devices_find(struct silt_devices *ret);
bool silt_devices_have(const struct silt_devices *d, const char *name);
uint32_t silt_devices_mtu(const struct silt_devices *d); /* the least; 0: there is none */

/* A socket that can be read when links or routes have changed. */
int silt_devices_listen(int *ret_fd, struct silt_error *e);
void silt_devices_heard(int fd); /* takes what it has to say, which nobody needs to know */
