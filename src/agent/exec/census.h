/* SPDX-License-Identifier: Apache-2.0 */
/* census: lists the processes in the control groups of this sandbox and the owner of each group. */
#pragma once

#include "agent/exec/session.h"

/* At most one of session and exec is set; neither: of a finished command, or of our workers. */
struct silt_group {
    struct silt_handle *handle;   /* borrowed */
    struct silt_session *session; /* borrowed */
    struct silt_exec *exec;       /* borrowed */
};

/* Visits all groups except the spare shell's, which contains nothing else. */
void silt_group_each(struct silt_agent *a, void (*visit)(void *arg, const struct silt_group *g),
                     void *arg);
/* True for the first process of a session, a context or a terminal, which outlive commands, and for
 * our workers. */
bool silt_group_protects(struct silt_agent *a, const struct silt_group *g, pid_t id);
/* The group of this process, unless it is protected. */
bool silt_census_find(struct silt_agent *a, pid_t pid, struct silt_group *ret);
/* Returns the number of unprotected processes in the groups. Unless id is 0, sends FOUND for each
 * of them (pid 0) or for `pid` alone. */
uint32_t silt_census_take(struct silt_agent *a, uint64_t id, pid_t pid);
