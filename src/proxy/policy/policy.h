/* SPDX-License-Identifier: Apache-2.0 */
/* policy: what one sandbox in mode allow may reach. Immutable; a change replaces it as a whole. */
#pragma once

#include "base/ip_prefix.h"
#include "wire/egress.h"

struct silt_policy;

enum silt_policy_verdict {
    SILT_POLICY_NO,
    SILT_POLICY_OTHER_PORT, /* some rule has it, for other ports */
    SILT_POLICY_YES,
};

/* SILT_INVALID: a rule is not as wire/egress.h wants it. */
int silt_policy_new(const struct silt_egress_rule *rules, size_t count, struct silt_policy **ret,
                    struct silt_error *e);
void silt_policy_free(struct silt_policy *p);

/* A name as silt_policy_clean makes it. */
enum silt_policy_verdict silt_policy_name(const struct silt_policy *p, silt_slice name,
                                          uint16_t port);
bool silt_policy_names(const struct silt_policy *p, silt_slice name); /* for some port */
enum silt_policy_verdict silt_policy_address(const struct silt_policy *p,
                                             const silt_ip_prefix *address, uint16_t port);

/* A host's name as somebody wrote it, made comparable: lower case, one dot at the end is taken
 * away. false: it is no name, but an address, empty, or with bytes that no name has; out is then
 * "". */
bool silt_policy_clean(silt_slice text, char out[SILT_EGRESS_NAME]);
