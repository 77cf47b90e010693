/* SPDX-License-Identifier: Apache-2.0 */
/* Which network a new sandbox gets: what its creator chose, else what the operator did. */
#include "sandbox/network.h"
#include "sandbox/rule.h"
#include "sandbox/sandbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int silt_registry_set_network(struct silt_registry_settings *s,
                              const struct silt_network_settings *n, struct silt_error *e)
{
    struct silt_rules rules;
    s->network = strcmp(n->mode, "none") == 0    ? SILT_NET_NONE
                 : strcmp(n->mode, "allow") == 0 ? SILT_NET_ALLOW
                                                 : SILT_NET_DEFAULT;
    if (silt_prefix_list_parse(silt_slice_of(n->open), &s->open, e) < 0)
        return silt_because(e, "setting network.open");
    silt_rules_init(&rules, &s->open);
    int done = silt_rules_add_all(&rules, silt_slice_of(n->allow), e);
    if (done == 0 && rules.count > 0)
        s->allow = strndup(rules.text.data, rules.text.len);
    silt_rules_fini(&rules);
    return done == 0 ? 0 : silt_because(e, "setting network.allow");
}

int silt_network_check(const struct silt_registry *r, const struct silt_sandbox_options *o,
                       struct silt_error *e)
{
    if (r->without_network && o->network != SILT_NET_DEFAULT && o->network != SILT_NET_NONE)
        return silt_fail(e, SILT_UNAVAILABLE, "this machine has no network for sandboxes");
    return 0;
}

void silt_network_choose(struct silt_sandbox *s, const struct silt_sandbox_options *o)
{
    const struct silt_registry_settings *settings = &s->registry->settings;
    s->network.demanded = o->network == SILT_NET_PUBLIC || o->network == SILT_NET_ALLOW;
    s->row.network = o->network != SILT_NET_DEFAULT ? o->network : settings->network;
    if (s->row.network == SILT_NET_CAPTIVE) {
        char number[24];
        (void)snprintf(number, sizeof(number), "%" PRIu64, o->capture);
        s->row.allow = strdup(number);
        s->network.unsaved = true;
        return;
    }
    if (s->row.network != SILT_NET_ALLOW)
        return;
    if (o->network == SILT_NET_ALLOW)
        s->row.allow = strndup(o->allow.data != NULL ? o->allow.data : "", o->allow.len);
    else if (settings->allow != NULL)
        s->row.allow = strdup(settings->allow);
    s->network.unsaved = true;
}
