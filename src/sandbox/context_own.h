/* SPDX-License-Identifier: Apache-2.0 */
/* context_own: what the files about contexts share with each other and nobody else. */
#pragma once

#include "sandbox/context.h"

/* context.c */
struct silt_context *silt_context_add(struct silt_sandbox *s);
void silt_context_keep(struct silt_context *c); /* by silt-super and in the store, for another siltd */
void silt_context_unkeep(struct silt_context *c);
void silt_context_tell(struct silt_link *waits, struct silt_context *c, const struct silt_error *e);
void silt_context_set_death(struct silt_context *c, const char *cause, const char *message);
void silt_context_close_kernel(struct silt_context *c);
/* Its process is gone, or never was: `why` is told to those who wait for it. */
void silt_context_die(struct silt_context *c, const struct silt_error *why);
/* Nothing of it is left: out of the list; those who wait for that are told. */
void silt_context_be_gone(struct silt_context *c);

/* context_process.c: where its process comes from, and how it ends. */
void silt_context_follow_process(struct silt_context *c); /* from now on */
int silt_context_start(struct silt_context *c, struct silt_error *e);
void silt_context_start_again(struct silt_context *c);
void silt_context_end_process(struct silt_context *c);

/* context_talk.c: what it says. */
void silt_context_hear(struct silt_context *c); /* from now on */
void silt_context_be_ready(struct silt_context *c);
void silt_context_send_ping(struct silt_context *c);
