/* SPDX-License-Identifier: Apache-2.0 */
/* warm: contexts whose process is forked from a warm Python by silt-priv, and reaped by it. One question at
 * a time and context; the answers are context.c's. */
#pragma once

#include "sandbox/context.h"

/* Whether its process would be the same as one that is started: the image is trusted, and nothing in its
 * environment is for the start of a program. */
bool silt_warm_suits(const struct silt_context *c);
/* Takes the guest's ends. Answer: silt_context_on_forked. */
void silt_warm_fork(struct silt_context *c, const int theirs[SILT_KERNEL_FDS]);
/* Its process has ended. Answer: silt_context_on_reaped. */
void silt_warm_reap(struct silt_context *c);
/* The same, but nobody wants to know. */
void silt_warm_let_go(struct silt_context *c);
void silt_warm_forget(struct silt_context *c); /* no answer comes any more; fine when none is due */
