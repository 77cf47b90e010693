/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network/network.h"
#include "sandbox/network/allow_rule.h"

int silt_network_read_settings(struct silt_registry_settings *s,
                               const struct silt_network_settings *n, struct silt_error *e)
{
    struct silt_allow_rules rules;
    s->network = strcmp(n->mode, "none") == 0    ? SILT_NET_NONE
                 : strcmp(n->mode, "allow") == 0 ? SILT_NET_ALLOW
                                                 : SILT_NET_DEFAULT;
    if (silt_ip_prefix_list_parse(silt_slice_of(n->open), &s->open, e) < 0)
        return silt_because(e, "setting network.open");
    silt_allow_rules_init(&rules, &s->open);
    int done = silt_allow_rules_add_all(&rules, silt_slice_of(n->allow), e);
    if (done == 0 && rules.count > 0)
        s->allow = strndup(rules.text.data, rules.text.len);
    silt_allow_rules_fini(&rules);
    return done == 0 ? 0 : silt_because(e, "setting network.allow");
}
