/* SPDX-License-Identifier: Apache-2.0 */
/* state: a shell's variables, functions, options, aliases, umask and parameters as text that
 * another shell can load: for background commands, and to replace a shell whose command timed
 * out. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* Scripts with which a shell writes its state; `save` also writes its traps, which a fork does not
 * have. */
#define SILT_STATE_FORK "fork"
#define SILT_STATE_SAVE "save"
#define SILT_STATE_WHOLE "#whole" /* the last line that both write */

/* Writes both scripts into the directory, unless they exist. */
int silt_state_install(int directory, struct silt_error *e);

/* above this, the user's own definitions dominate the state */
enum { SILT_STATE_SMALL = 16 << 10 };

/* Removes what every shell sets by itself, which is a third of the loading time. False: the state
 * is too large for that. */
bool silt_state_trim(int fd);

/* Environment of a shell that will load a state: enough to start without lookups. Loading the state
 * removes the variables that are not part of it. */
char *const *silt_state_env(void);
