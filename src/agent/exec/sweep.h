/* SPDX-License-Identifier: Apache-2.0 */
/* sweep: ends all processes found in the control groups, except waiting shells, contexts, terminals
 * and our workers. It starts no process, so it works at the pids limit. */
#pragma once

#include "agent/exec/agent.h"

/* See SILT_AGENT_SWEEP. */
void silt_sweep_start(struct silt_agent *a, uint64_t id, const struct silt_agent_sweep *how);
/* Ends the processes that this session's commands left in groups of their own; calls
 * silt_session_exec_left when done. */
void silt_sweep_session(struct silt_agent *a, uint64_t session);
/* The session of this group died before a sweep could begin there. */
void silt_sweep_left(struct silt_agent *a, struct silt_handle *h);
bool silt_sweep_has(struct silt_agent *a, uint64_t session); /* true while that is not done */
/* The command is over: its group is no longer protected. `gone`: the group no longer belongs to us
 * either. */
void silt_sweep_unprotect(struct silt_agent *a, const struct silt_handle *h, bool gone);
