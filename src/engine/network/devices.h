/* SPDX-License-Identifier: Apache-2.0 */
/* devices: the interfaces that lead to the internet: those with a default route in any routing
 * table, IPv4 or IPv6. */
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

/* Looks in the caller's network namespace. On a netlink error the list is empty. */
void silt_devices_find(struct silt_devices *ret);
bool silt_devices_have(const struct silt_devices *d, const char *name);
uint32_t silt_devices_mtu(const struct silt_devices *d); /* the smallest; 0: no devices */

/* Opens a socket that becomes readable when links or routes change. */
int silt_devices_listen(int *ret_fd, struct silt_error *e);
void silt_devices_heard(int fd); /* drains the socket; the messages themselves do not matter */
