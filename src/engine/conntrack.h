/* SPDX-License-Identifier: Apache-2.0 */
/* conntrack: the connections that the kernel tracks for one network namespace. */
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
    const struct nlattr *orig, *reply; /* what packets of either direction look like */
    const uint8_t *from;               /* the address of who began it */
};

/* In the caller's namespace of the moment. */
int silt_conntrack_open(struct silt_conntrack *c, struct silt_error *e);
void silt_conntrack_close(struct silt_conntrack *c);

/* Forgets those that `goes` says true of. Answers how many. */
typedef bool silt_conntrack_goes(void *context, const struct silt_tracked *t);
uint32_t silt_conntrack_forget(struct silt_conntrack *c, int family, silt_conntrack_goes *goes,
                               void *context);
/* The same connection, on its way on, in the namespace behind: what leaves one by translation of
 * its source enters the next. Forgets it there. */
void silt_conntrack_forget_next(struct silt_conntrack *next, const struct silt_tracked *t);
