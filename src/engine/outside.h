/* SPDX-License-Identifier: Apache-2.0 */
/* outside: what the gate needs of the network namespace the daemon was started in, usually the
 * machine's own: rules and switches, all of them named or noted, so that they can be removed, also
 * by a successor. */
#pragma once

#include "engine/devices.h"
#include "engine/rtnl.h"
#include "engine/rules.h"

#include <limits.h>

struct silt_outside {
    char uplink[IF_NAMESIZE]; /* our end of the link to the gate */
    char table[32];
    char note[PATH_MAX + 16]; /* path: which switches we turned on */
    struct silt_devices devices;
    struct silt_outside_opened opened[SILT_DEVICES_MAX]; /* that forward only because of us */
    size_t nopened;
    uint32_t mtu;          /* the least of theirs */
    bool ipv6;             /* the uplink has it */
    struct silt_plan plan; /* only its block: the addresses of the uplink */
};

/* `block`: as in struct silt_gate_config. */
void silt_outside_init(struct silt_outside *o, const char *instance, uint32_t block,
                       const char *run);
void silt_outside_look(struct silt_outside *o); /* for devices, mtu and ipv6 */
/* The link is there. */
int silt_outside_open(struct silt_outside *o, const struct silt_plan *plan, struct silt_error *e);
/* Links or routes have changed: other devices may lead to the world now. */
int silt_outside_follow(struct silt_outside *o, const struct silt_plan *plan, struct silt_error *e);
/* Link, table, switches and tracked connections go, whoever of that name made them. */
void silt_outside_clear(struct silt_outside *o);
/* The same, when an instance that was killed has left something. */
void silt_outside_clear_old(const char *instance, uint32_t block, const char *run);
