/* SPDX-License-Identifier: Apache-2.0 */
/* sweep: the end of everybody who is found in the control groups, and of nobody else: shells that
 * wait, contexts, terminals and our workers stay. It starts no process, so it works when no more
 * are allowed. */
#pragma once

#include "agent/agent.h"

/* As SILT_AGENT_SWEEP says. */
void silt_sweep_start(struct silt_agent *a, uint64_t id, const struct silt_agent_sweep *how);
/* What commands of this session have left in groups of their own ends; silt_session_exec_left is
 * called when it has. */
void silt_sweep_session(struct silt_agent *a, uint64_t session);
bool silt_sweep_has(struct silt_agent *a, uint64_t session); /* and that is not done yet */
/* The command is over: nobody in the group is protected any more. `gone`: the group is not ours any
 * more, either. */
void silt_sweep_unprotect(struct silt_agent *a, const struct silt_handle *h, bool gone);
