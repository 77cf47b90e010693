/* SPDX-License-Identifier: Apache-2.0 */
/* state: a shell's variables, functions, options, aliases, umask and parameters as text that
 * another shell can load: for background commands, and to replace a shell whose command ran out of
 * time. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* What a shell runs to write its state, and in it `save` also its traps: a fork has none. */
#define SILT_STATE_FORK "fork"
#define SILT_STATE_SAVE "save"
#define SILT_STATE_WHOLE "#whole" /* the last line of what both write */

/* Puts the two into the folder, unless they are there. */
int silt_state_install(int folder, struct silt_error *e);

enum { SILT_STATE_SMALL = 16 << 10 }; /* a state beyond that is dominated by what the user made */

/* Leaves out what every shell makes up by itself: a third of the time that loading takes. False: it is
 * too large for that. */
bool silt_state_trim(int fd);

/* Environment of a shell that is going to load a state: enough to start without asking around. What
 * the state does not have is taken away again by the state. */
char *const *silt_state_env(void);
