/* SPDX-License-Identifier: Apache-2.0 */
/* firewall: finds rules of other software on this machine that would drop packets of sandboxes. All
 * rule sets apply: a packet that ours accepts is still dropped by another forward chain that drops
 * by default (Docker's, ufw's, firewalld's). */
#pragma once

#include "base/slice.h"

struct silt_firewall {
    char who[200];     /* the chain that drops packets */
    char way_out[640]; /* commands that make it accept our uplink */
};

/* `text`: output of `nft list ruleset`. `own`: our table. `uplink`: our interface. True: a chain
 * drops packets, and no rule of its table accepts those of the uplink. */
bool silt_firewall_in_nft(silt_slice text, const char *own, const char *uplink,
                          struct silt_firewall *ret);
/* `text`: output of `iptables-legacy -S` or `ip6tables-legacy -S` (`program`). */
bool silt_firewall_in_legacy(silt_slice text, const char *program, const char *uplink,
                             struct silt_firewall *ret);
/* Runs the programs. Also false without root, which they need. */
bool silt_firewall_find(const char *instance, struct silt_firewall *ret);
