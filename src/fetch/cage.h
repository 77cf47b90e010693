/* SPDX-License-Identifier: Apache-2.0 */
/* cage: what silt-fetch gives up before it reads a stranger's byte. silt-priv has started it in a
 * user namespace of its own; here the output folder becomes all there is. Cannot be undone. */
#pragma once

#include "base/error.h"

enum { SILT_CAGE_INPUT = 0, SILT_CAGE_OUTPUT = 1, SILT_CAGE_RESULT = 3 }; /* the only descriptors that matter */

/* Makes the current folder the root, keeps the four capabilities that unpacking needs, refuses
 * every system call but those of unpacking: no program, no process, no socket, no memory to
 * execute. From
 * here on the process ends when nobody reads its result. */
int silt_cage_enter(struct silt_error *e);
void silt_cage_tell(void); /* before the result is written: a reader that reads looks like one that leaves */
