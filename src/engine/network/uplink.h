/* SPDX-License-Identifier: Apache-2.0 */
/* uplink: the gateway's part in the network namespace the daemon was started in, usually the
 * machine's own: rules and sysctls. Each is named or recorded in a file, so a later instance can
 * undo them. Runs in silt-super. */
#pragma once

#include "engine/network/devices.h"
#include "engine/network/rtnl.h"
#include "engine/network/rules.h"

#include <limits.h>

struct silt_uplink {
    char uplink[IF_NAMESIZE]; /* our end of the link to the gateway */
    char table[32];
    char note[PATH_MAX + 16]; /* path of the file that records the sysctls we changed */
    struct silt_devices devices;
    /* interfaces that forward only because of us */
    struct silt_uplink_opened opened[SILT_DEVICES_MAX];
    size_t nopened;
    uint32_t mtu;          /* the smallest MTU of the devices */
    bool ipv6;             /* the uplink has IPv6 */
    struct silt_plan plan; /* only its block: the uplink's addresses */
};

/* `block`: as in struct silt_gateway_config. */
void silt_uplink_init(struct silt_uplink *o, const char *instance, uint32_t block, const char *run);
void silt_uplink_look(struct silt_uplink *o); /* fills devices, mtu and ipv6 */
/* The link must exist. */
int silt_uplink_open(struct silt_uplink *o, const struct silt_plan *plan, struct silt_error *e);
/* After links or routes changed: other devices may lead to the internet now. */
int silt_uplink_follow(struct silt_uplink *o, const struct silt_plan *plan, struct silt_error *e);
/* As after silt_uplink_open, for one that an earlier program of this process opened. */
void silt_uplink_resume(struct silt_uplink *o);
/* Removes link, table, sysctl changes and tracked connections, also those of an earlier instance of
 * this name. */
void silt_uplink_clear(struct silt_uplink *o);
/* The same, for the leftovers of an instance that was killed. */
void silt_uplink_clear_old(const char *instance, uint32_t block, const char *run);
