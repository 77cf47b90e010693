/* SPDX-License-Identifier: Apache-2.0 */
/* terminal: a pseudo-terminal for a command. Sizes are rows << 16 | columns, as in wire/agent.h. */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* The caller owns both; ours is non-blocking. */
int silt_terminal_open(uint32_t size, int *ret_ours, int *ret_theirs, struct silt_error *e);
void silt_terminal_resize(int ours, uint32_t size); /* the foreground process group gets SIGWINCH */
