/* SPDX-License-Identifier: Apache-2.0 */
/* worker: one of the processes of silt-priv that answer requests, one at a time each. They wait on
 * the same socket; the kernel gives each message to one. */
#pragma once

#include "priv/unit.h"

/* Returns when siltd has closed the channel. */
int silt_worker_run(struct silt_priv_unit *u, int siltd, struct silt_error *e);
