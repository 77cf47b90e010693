/* SPDX-License-Identifier: Apache-2.0 */
/* internal: functions shared by the files of sandbox/context only. */
#pragma once

#include "sandbox/context/context.h"

/* context.c */
/* Its processes have ended. */
void silt_context_drop_all(struct silt_sandbox *s, const struct silt_error *e);
void silt_context_forget_all(struct silt_sandbox *s); /* siltd is exiting: no callbacks */
struct silt_context *silt_context_add(struct silt_sandbox *s);
/* Saves it in silt-super and the store, for the next siltd. */
int silt_context_keep(struct silt_context *c, struct silt_error *e);
void silt_context_unkeep(struct silt_context *c);
void silt_context_tell(struct silt_link *waits, struct silt_context *c, const struct silt_error *e);
void silt_context_set_death(struct silt_context *c, const char *cause, const char *message);
void silt_context_close_kernel(struct silt_context *c);
/* Its process is gone or never started; waiters get `why`. */
void silt_context_die(struct silt_context *c, const struct silt_error *why);
/* Nothing of it is left: unlinks it and calls those waiting for that. */
void silt_context_be_gone(struct silt_context *c);

/* process.c: where its process comes from and how it ends. */
void silt_context_follow_process(struct silt_context *c); /* from now on */
int silt_context_start(struct silt_context *c, struct silt_error *e);
void silt_context_start_again(struct silt_context *c);
void silt_context_end_process(struct silt_context *c);

/* talk.c: the lines it sends. */
void silt_context_hear(struct silt_context *c); /* from now on */
void silt_context_be_ready(struct silt_context *c);
void silt_context_send_ping(struct silt_context *c);
