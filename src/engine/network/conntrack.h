/* SPDX-License-Identifier: Apache-2.0 */
/* conntrack: lists and deletes the tracked connections of one network namespace. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct nlattr;

struct silt_conntrack {
    int list, drop; /* sockets; -1: closed */
};

struct silt_tracked {
    int family;
    const struct nlattr *orig, *reply; /* the tuples of the two directions */
    const uint8_t *from;               /* source address of the connection */
};

/* Opened in the caller's current network namespace. */
int silt_conntrack_open(struct silt_conntrack *c, struct silt_error *e);
void silt_conntrack_close(struct silt_conntrack *c);

/* Deletes the connections for which `goes` returns true. Returns their number. */
typedef bool silt_conntrack_goes(void *context, const struct silt_tracked *t);
uint32_t silt_conntrack_forget(struct silt_conntrack *c, int family, silt_conntrack_goes *goes,
                               void *context);
/* Deletes the same connection in the next namespace: after source NAT in the first one it enters
 * the next with the translated address. */
void silt_conntrack_forget_next(struct silt_conntrack *next, const struct silt_tracked *t);
