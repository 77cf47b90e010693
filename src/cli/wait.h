/* SPDX-License-Identifier: Apache-2.0 */
/* wait: for a descriptor, with a limit, and with Ctrl-C as an answer. */
#pragma once

#include "base/error.h"

/* From here on Ctrl-C does not end the program: calls that wait end with SILT_INTERRUPTED. */
int silt_wait_catch_interrupt(struct silt_error *e);
/* After it was told: what has to be done because of it can wait too, until the next Ctrl-C. */
void silt_wait_forget_interrupt(void);
/* In a child before exec: Ctrl-C is for it as for any program. */
void silt_wait_leave_interrupt(void);
/* What the descriptor is ready for, of `events` (poll); limit_ms -1: none. Fails with SILT_TIMEOUT.
 */
int silt_wait_for(int fd, short events, int limit_ms, short *ret_ready, struct silt_error *e);
