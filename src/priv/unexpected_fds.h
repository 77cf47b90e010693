/* SPDX-License-Identifier: Apache-2.0 */
/* unexpected_fds: closes descriptors that siltd sent. A close can block for as long as the sender
 * likes: on a socket with SO_LINGER, or on a unix socket with such a socket in its queue. A signal
 * interrupts that wait, so a timer sends one. */
#pragma once

#include "base/fd.h"

/* Call in each process that closes such descriptors, before the first. */
int silt_unexpected_fds_prepare(struct silt_error *e);
void silt_unexpected_fds_close(struct silt_parcel *p);
/* Closes a channel to siltd and all descriptors still queued in it. */
void silt_unexpected_fds_hang_up(int *channel);
