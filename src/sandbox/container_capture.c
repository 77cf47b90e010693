/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container_own.h"
#include "sandbox/sandbox.h"

void silt_container_begin_capture(struct silt_container *sidecar)
{
    sidecar->egress = sidecar->spec.egress_port;
}

void silt_container_forget_capture(struct silt_container *sidecar)
{
    sidecar->egress = 0;
}

void silt_container_choose_network(struct silt_container *c, struct silt_sandbox_options *o)
{
    o->network = c->spec.sidecar.len > 0 ? SILT_NET_NONE : SILT_NET_DEFAULT;
}

uint16_t silt_container_egress_port(const struct silt_container *sidecar)
{
    return sidecar->egress;
}
