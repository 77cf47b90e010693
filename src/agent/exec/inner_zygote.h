/* SPDX-License-Identifier: Apache-2.0 */
/* inner_zygote: a preloaded interpreter inside the sandbox that forks contexts from itself
 * (wire/zygote.h). It is a process of the guest and not trusted: it receives only the four pipes of
 * a context, the pid it returns is checked, and every wait for it has a timeout. */
#pragma once

#include "agent/exec/exec.h"

/* For an exec with SILT_START_WARM; the caller owns *ret_theirs. */
int silt_inner_zygote_open(struct silt_exec *x, int *ret_theirs, struct silt_error *e);
/* Asks x->from to fork x, which must have its handle. x->on_forked is called once, later, unless
 * silt_inner_zygote_leave comes first. */
int silt_inner_zygote_fork(struct silt_exec *x, struct silt_error *e);
void silt_inner_zygote_leave(struct silt_exec *x); /* fine for every exec */
