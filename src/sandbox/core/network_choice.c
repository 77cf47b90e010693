/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/network_choice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

enum silt_net_mode silt_network_birth_mode(const struct silt_sandbox *s)
{
    return s->row.network == SILT_NET_ALLOW ? SILT_NET_NONE : s->row.network;
}
