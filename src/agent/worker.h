/* SPDX-License-Identifier: Apache-2.0 */
/* worker: children of ours that touch the guest's files for siltd (wire/worker.h, src/worker). They
 * share one handle: each is killed by its number, and takes what it started along. */
#pragma once

#include "agent/agent.h"

/* Takes sock. */
void silt_worker_start(struct silt_agent *a, uint64_t id, silt_slice user, int sock);
bool silt_worker_is(struct silt_agent *a, pid_t pid);
void silt_worker_kill(struct silt_agent *a, uint64_t id); /* fine when it is gone */
