/* SPDX-License-Identifier: Apache-2.0 */
/* strange: descriptors that siltd sent, and how they are let go of. A close can wait for as long as the sender likes: that
 * of a socket that lingers, and that of a unix socket in whose queue such a one lies. The kernel stops waiting when a
 * signal comes: so one does. */
#pragma once

#include "base/fd.h"

/* In each process that closes such descriptors, before the first. */
int silt_strange_prepare(struct silt_error *e);
void silt_strange_close(struct silt_parcel *p);
/* Closes a channel to siltd with all that is still in it. */
void silt_strange_hang_up(int *channel);
