/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network/intercept.h"
#include "sandbox/container/internal.h"
#include "sandbox/core/recovery.h"
#include "sandbox/core/sandbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Not waited for: workerd sets it again before it starts anything. */
static void on_begun(struct silt_intercept_ask *a, silt_slice pem, const struct silt_error *e)
{
    (void)a;
    (void)pem;
    (void)e;
}

void silt_container_begin_capture(struct silt_container *sidecar)
{
    struct silt_intercept_change change = {.has_port = sidecar->spec.egress_port != 0,
                                           .port = sidecar->spec.egress_port};
    struct silt_intercept_ask ask = {.on_done = on_begun};
    silt_intercept_set(sidecar->all->registry, sidecar->row.number, &change, &ask);
    silt_intercept_leave(&ask);
}

void silt_container_forget_capture(struct silt_container *sidecar)
{
    silt_intercept_remove(sidecar->all->registry, sidecar->row.number);
}

/* On a machine without sandbox networking, no silt-proxy could intercept anything. */
void silt_container_choose_network(struct silt_container *c, struct silt_sandbox_options *o)
{
    struct silt_registry *r = c->all->registry;
    const struct silt_container *sidecar =
        c->spec.sidecar.len > 0 ? silt_container_find(c->all, c->spec.sidecar) : NULL;
    if (sidecar == NULL)
        return;
    o->network = r->without_network ? SILT_NET_NONE : SILT_NET_CAPTIVE;
    o->capture = r->without_network ? 0 : sidecar->row.number;
}

bool silt_container_fits_network(struct silt_container *c, const struct silt_sandbox *s)
{
    struct silt_sandbox_options o = {.network = SILT_NET_DEFAULT};
    silt_container_choose_network(c, &o);
    if (o.network == SILT_NET_DEFAULT)
        return s->row.network != SILT_NET_CAPTIVE;
    return s->row.network == o.network;
}

void silt_container_give_network(struct silt_container *c, struct silt_sandbox *s)
{
    struct silt_sandbox_options o = {.network = SILT_NET_DEFAULT};
    char number[24];
    silt_container_choose_network(c, &o);
    (void)snprintf(number, sizeof(number), "%" PRIu64, o.capture);
    bool stopped = s->state == SILT_SANDBOX_STOPPED || s->state == SILT_SANDBOX_STOPPING;
    if (!stopped || o.network != SILT_NET_CAPTIVE
        || (s->row.allow != NULL && strcmp(s->row.allow, number) == 0))
        return;
    free(s->row.allow);
    s->row.allow = strdup(number);
    if (s->row.allow == NULL)
        abort();
    s->network.unsaved = true;
    silt_sandbox_save(s);
    silt_recovery_on_sandbox(s);
}

uint32_t silt_containers_owner(const struct silt_registry *r, uint64_t number)
{
    silt_list_each(it, &r->containers->list)
    {
        const struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (c->row.number == number)
            return c->row.uid;
    }
    return 0;
}

uint16_t silt_container_egress_port(const struct silt_container *sidecar)
{
    return silt_intercept_port(sidecar->all->registry, sidecar->row.number);
}
