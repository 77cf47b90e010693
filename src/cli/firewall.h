/* SPDX-License-Identifier: Apache-2.0 */
/* firewall: rules of others on this machine that would swallow what sandboxes send. Every rule set
 * of a machine has a say: a packet that ours lets through is dropped all the same by a forward
 * chain that drops what it does not know (Docker's, ufw's, firewalld's). */
#pragma once

#include "base/slice.h"

struct silt_firewall {
    char who[200];      /* the chain that drops */
    char way_out[640]; /* commands that let our uplink through */
};

/* `text`: as `nft list ruleset` prints it. `own`: our table. `uplink`: our interface. True: there
 * is one, and no rule of its table lets the uplink through. */
bool silt_firewall_in_nft(silt_slice text, const char *own, const char *uplink,
                          struct silt_firewall *ret);
/* `text`: as `iptables-legacy -S` or `ip6tables-legacy -S` (`program`) prints it. */
bool silt_firewall_in_legacy(silt_slice text, const char *program, const char *uplink,
                             struct silt_firewall *ret);
/* Asks the programs. False also when they may not tell (needs root). */
bool silt_firewall_find(const char *instance, struct silt_firewall *ret);
