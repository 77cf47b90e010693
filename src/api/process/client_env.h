/* SPDX-License-Identifier: Apache-2.0 */
/* client_env: remembers the variables that a compatible client sets. The client sets them with
 * commands in its own session, `export NAME='value'` and `unset NAME`, and passes them to sessions
 * it creates. It forgets them when it restarts while the sandbox keeps running, so siltd remembers
 * them. */
#pragma once

#include "api/core/api.h"

/* Called for each command in a session: records the variable if the client marked the command as
 * its own and it is such an export or unset. */
void silt_export_note(struct silt_call *c, silt_slice command);
