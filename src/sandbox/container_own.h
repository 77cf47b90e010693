/* SPDX-License-Identifier: Apache-2.0 */
/* container_own: what the files about containers share with each other and nobody else. */
#pragma once

#include "sandbox/container.h"

/* container_capture.c: the way out. A sidecar has one from its making to its removal. */
void silt_container_begin_capture(struct silt_container *sidecar);
void silt_container_forget_capture(struct silt_container *sidecar);
void silt_container_choose_network(struct silt_container *c, struct silt_sandbox_options *o);
/* Files that were kept stay in their kind of network, and get the number of the new way out. */
bool silt_container_fits_network(struct silt_container *c, const struct silt_sandbox *s);
void silt_container_give_network(struct silt_container *c, struct silt_sandbox *s);
uint16_t silt_container_egress_port(const struct silt_container *sidecar); /* 0: not known */

/* container_trust.c: whoever sets SANDBOX_INTERCEPT_HTTPS=1 on a control server of ours wants its programs to trust the certificate that
 * the engine's client has put into the container. */
void silt_container_name_trust(struct silt_container *c); /* the variables that programs look for; those of its own stay */
/* `on_trusted` is told when it is so, with no error if nothing was wanted. */
int silt_container_trust(struct silt_container *c, struct silt_sandbox *s,
                         void (*on_trusted)(struct silt_container *c, const struct silt_error *e), struct silt_error *e);
