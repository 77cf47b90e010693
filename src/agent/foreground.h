/* SPDX-License-Identifier: Apache-2.0 */
/* foreground: a command in the session's shell itself. When its time is over the shell is killed,
 * with all that the command started, and replaced by one that loads the state from before the
 * command: signalling only the children would let the rest of the script run on. */
#pragma once

#include "agent/session.h"

/* The session is idle. */
void silt_foreground_start(struct silt_session *s, struct silt_exec *x);
/* The shell answered with our mark, while RUNNING or RELOADING. */
void silt_foreground_answer(struct silt_session *s, const struct silt_answer *a);
/* The shell was reaped, or could not be started again. */
void silt_foreground_shell_ended(struct silt_session *s);
/* What the command started is dead. */
void silt_foreground_clean(struct silt_session *s);
/* As if its time were over. */
void silt_foreground_kill(struct silt_session *s);
/* Whoever asked for it does not wait any more. */
void silt_foreground_drop(struct silt_session *s);
