/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the two static rule sets, as texts for nft. Which sandbox may do what is no matter of
 * rules: that is the group of its link (enum silt_net_mode). */
#pragma once

#include "base/buf.h"
#include "engine/plan.h"

/* Of the gate. `open`: private networks that sandboxes may reach all the same, a list with commas,
 * checked by silt_rules_check_open; `connections`: the most of one sandbox. */
void silt_rules_gate(struct silt_buf *out, const char *open, uint32_t connections);
int silt_rules_check_open(const char *open, struct silt_error *e);

/* Of the namespace that the uplink leads to; `name` is the link's end there. */
struct silt_rules_outside {
    const char *table;
    const char *uplink;
    const struct silt_plan *plan;
    /* Interfaces that forward only because of us, separated by spaces. */
    const char *opened;
};
void silt_rules_outside(struct silt_buf *out, const struct silt_rules_outside *r);
void silt_rules_no_outside(struct silt_buf *out, const char *table);
