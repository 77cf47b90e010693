/* SPDX-License-Identifier: Apache-2.0 */
/* background: a session puts down its state for a command that runs in a new shell. Once it has,
 * the session is free again and the command is run.c's. The state is kept for the next one until
 * something runs in the shell. */
#pragma once

#include "agent/session.h"

/* The session is idle. */
void silt_background_start(struct silt_session *s, struct silt_exec *x);
/* The shell answered with our mark, while SAVING. */
void silt_background_answer(struct silt_session *s, const struct silt_answer *a);
/* The command cannot be started; the session is idle again. */
void silt_background_fail(struct silt_session *s, enum silt_code code, const char *why);
