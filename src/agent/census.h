/* SPDX-License-Identifier: Apache-2.0 */
/* census: who is in the control groups of this sandbox, and whose group each is. */
#pragma once

#include "agent/session.h"

/* At most one of the two; none: of a command that is over, or of our workers. */
struct silt_group {
    struct silt_handle *handle;   /* borrowed */
    struct silt_session *session; /* borrowed */
    struct silt_exec *exec;       /* borrowed */
};

/* All but that of the spare shell, which has nobody else in it. */
void silt_group_each(struct silt_agent *a, void (*visit)(void *arg, const struct silt_group *g),
                     void *arg);
/* The first process of what outlives its commands: a session, a context, a terminal; or a worker of
 * ours. */
bool silt_group_protects(struct silt_agent *a, const struct silt_group *g, pid_t id);
/* Where this process is, if it is not protected. */
bool silt_census_find(struct silt_agent *a, pid_t pid, struct silt_group *ret);
/* How many are in the groups, protected ones not counted; says FOUND of each (pid 0) or of that
 * one, unless id is 0. */
uint32_t silt_census_take(struct silt_agent *a, uint64_t id, pid_t pid);
