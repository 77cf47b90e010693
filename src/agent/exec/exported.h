/* SPDX-License-Identifier: Apache-2.0 */
/* exported: reports the exported variables of a session's shell to siltd, which keeps them for the
 * time after a stop. The shell writes them to a file once it has answered a command; we read the
 * file a little later, so that no command waits for it. */
#pragma once

#include "agent/exec/session.h"

/* The file of a new session; the shell's user may not create one. */
int silt_exported_begin(struct silt_session *s, struct silt_error *e);
void silt_exported_fini(struct silt_session *s);
/* The shell has answered a command and is writing its variables. */
void silt_exported_await(struct silt_session *s);
/* Reports what is outstanding, then answers the PING with this id; soon in any case. */
void silt_exported_flush(struct silt_agent *a, uint64_t ping);
/* A new siltd: reports everything again. */
void silt_exported_renew(struct silt_agent *a);
