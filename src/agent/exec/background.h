/* SPDX-License-Identifier: Apache-2.0 */
/* background: saves a session's shell state for a command that runs in a new shell. Then the
 * session is free again and run.c runs the command. The saved state is reused for later commands
 * until the session's shell runs something. */
#pragma once

#include "agent/exec/session.h"

/* The session must be idle. */
void silt_background_start(struct silt_session *s, struct silt_exec *x);
/* In state SAVING: the shell answered with our mark. */
void silt_background_answer(struct silt_session *s, const struct silt_answer *a);
/* The command cannot be started; the session is idle again. */
void silt_background_fail(struct silt_session *s, enum silt_code code, const char *why);
