/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the two static rule sets, as texts for nft. Which sandbox may do what is no matter of
 * rules: that is the group of its link (enum silt_net_mode). */
#pragma once

#include "base/buf.h"
#include "engine/plan.h"

/* Of the gateway's sockets (enum silt_super_socket): for names; for names and for everything else
 * of links in mode allow. */
enum { SILT_RULES_DNS_PORT = 53, SILT_RULES_ALLOW_DNS_PORT = 54, SILT_RULES_ALLOW_PORT = 55 };

/* Of the gate. */
struct silt_rules_gate {
    const char *open; /* private networks that sandboxes may reach all the same, a list with commas,
                       * checked by silt_rules_check_open */
    uint32_t connections; /* the most of one sandbox */
    const struct silt_plan *plan;
    bool ipv6; /* it leads somewhere */
};
void silt_rules_gate(struct silt_buf *out, const struct silt_rules_gate *r);
int silt_rules_check_open(const char *open, struct silt_error *e);
/* More of the gate's: beyond about `all` connections of all sandboxes each may begin only a few
 * more, and twice as many there never are. */
void silt_rules_crowd(struct silt_buf *out, uint32_t all);

/* An interface that forwards only because of us, and by which family. */
struct silt_outside_opened {
    char name[IF_NAMESIZE];
    bool four, six;
};

/* Of the namespace that the uplink leads to; `name` is the link's end there. */
struct silt_rules_outside {
    const char *table;
    const char *uplink;
    const struct silt_plan *plan;
    bool ipv6; /* the uplink has it */
    const struct silt_outside_opened *opened;
    size_t nopened;
};
void silt_rules_outside(struct silt_buf *out, const struct silt_rules_outside *r);
void silt_rules_no_outside(struct silt_buf *out, const char *table);
