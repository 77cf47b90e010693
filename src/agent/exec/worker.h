/* SPDX-License-Identifier: Apache-2.0 */
/* worker: children of silt-init that access the guest's files for siltd (wire/worker.h,
 * src/worker). They share one handle, so each is killed by its pid, together with what it
 * started. */
#pragma once

#include "agent/exec/agent.h"

/* Takes sock. */
void silt_worker_start(struct silt_agent *a, uint64_t id, silt_slice user, int sock);
bool silt_worker_is(struct silt_agent *a, pid_t pid);
void silt_worker_kill(struct silt_agent *a, uint64_t id); /* fine if it is gone */
