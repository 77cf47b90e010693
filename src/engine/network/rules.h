/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the two static rule sets, as text for nft. They do not depend on which sandboxes exist: a
 * sandbox's policy is the group of its link (enum silt_net_mode). */
#pragma once

#include "base/buf.h"
#include "engine/network/plan.h"

/* Ports of the gateway's sockets (enum silt_super_socket): DNS; DNS and everything else for links
 * in mode allow. */
enum { SILT_RULES_DNS_PORT = 53, SILT_RULES_ALLOW_DNS_PORT = 54, SILT_RULES_ALLOW_PORT = 55 };

/* The rule set of the gateway. */
struct silt_rules_gate {
    /* private networks that sandboxes may reach, comma-separated, checked by
     * silt_rules_check_open */
    const char *open;
    uint32_t connections; /* limit per sandbox */
    const struct silt_plan *plan;
    bool ipv6; /* the uplink has IPv6 */
};
void silt_rules_gate(struct silt_buf *out, const struct silt_rules_gate *r);
int silt_rules_check_open(const char *open, struct silt_error *e);
/* More rules for the gateway: once all sandboxes together have about `all` connections, each may
 * open only a few more; twice `all` is the hard limit. */
void silt_rules_crowd(struct silt_buf *out, uint32_t all);

/* An interface on which we enabled forwarding, by address family. */
struct silt_uplink_opened {
    char name[IF_NAMESIZE];
    bool four, six;
};

/* The rule set of the namespace that the uplink leads to; `uplink` is the name of the link's end
 * there. */
struct silt_rules_outside {
    const char *table;
    const char *uplink;
    const struct silt_plan *plan;
    bool ipv6; /* the uplink has IPv6 */
    const struct silt_uplink_opened *opened;
    size_t nopened;
};
void silt_rules_outside(struct silt_buf *out, const struct silt_rules_outside *r);
void silt_rules_no_outside(struct silt_buf *out, const char *table);
