/* SPDX-License-Identifier: Apache-2.0 */
/* foreground: runs a command in the session's shell itself. On a timeout the shell is killed with
 * everything the command started, and replaced by one that loads the state from before the command:
 * signalling only the children would let the rest of the script run on. */
#pragma once

#include "agent/exec/session.h"

/* The session must be idle. */
void silt_foreground_start(struct silt_session *s, struct silt_exec *x);
/* In state RUNNING or RELOADING: the shell answered with our mark. */
void silt_foreground_answer(struct silt_session *s, const struct silt_answer *a);
/* The shell was reaped, or could not be restarted. */
void silt_foreground_shell_ended(struct silt_session *s);
/* All processes that the command started are dead. */
void silt_foreground_clean(struct silt_session *s);
/* Ends the command as on a timeout. */
void silt_foreground_kill(struct silt_session *s);
/* The requester no longer waits for the result. */
void silt_foreground_drop(struct silt_session *s);
