/* SPDX-License-Identifier: Apache-2.0 */
/* wait: waits for a descriptor, with a timeout, and returns early on Ctrl-C. */
#pragma once

#include "base/error.h"

/* From now on Ctrl-C does not end the program; a waiting call fails with SILT_INTERRUPTED instead.
 */
int silt_wait_catch_interrupt(struct silt_error *e);
/* For a command that cleans up: also holds SIGTERM and SIGHUP back from now on, and all three until
 * silt_wait_catch_interrupt, after which they are the same as Ctrl-C. */
int silt_wait_hold_signals(struct silt_error *e);
/* Resets it after SILT_INTERRUPTED, so that the cleanup can wait, too, until the next Ctrl-C. */
void silt_wait_forget_interrupt(void);
/* In a child before exec: restores the default behaviour of Ctrl-C. */
void silt_wait_leave_interrupt(void);
/* Which of `events` (poll) the descriptor is ready for. limit_ms -1: no timeout. Fails with
 * SILT_TIMEOUT. */
int silt_wait_for(int fd, short events, int limit_ms, short *ret_ready, struct silt_error *e);
