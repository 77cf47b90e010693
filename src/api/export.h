/* SPDX-License-Identifier: Apache-2.0 */
/* export: variables that a compatible client sets. It does so by commands in its own session,
 * `export NAME='value'` and `unset NAME`, and brings them along when it makes others; but it
 * forgets them when it starts anew, while the sandbox runs on. So they are remembered here. */
#pragma once

#include "api/api.h"

/* Of a command in a session: notes the variable, if the client says that the command is its own and
 * it is such a one. */
void silt_export_note(struct silt_call *c, silt_slice command);
