/* SPDX-License-Identifier: Apache-2.0 */
/* super: starts silt-priv and siltd, starts again what dies, connects the two with each other, and
 * keeps the descriptors of running sandboxes for the next siltd (wire/super.h). Reads no request.
 */
#pragma once

#include "engine/gate.h"
#include "super/starter.h"

struct silt_super_birth {
    const struct silt_config *config; /* borrowed */
    struct silt_starter *starter;     /* borrowed, open */
    int listen;                       /* borrowed */
    int preview;                      /* borrowed: where visitors come in; -1: nowhere */
    int engine;                       /* borrowed: the engine socket; -1: there is none */
    struct silt_gate *gate;           /* borrowed: the way out, if there is one */
    const char *address;              /* borrowed: of the listening socket */
    const char *preview_address;      /* borrowed */
};

/* Until SIGTERM or SIGINT, which the caller has blocked together with SIGCHLD. *ret_status is what
 * the process should exit with. */
int silt_super_run(const struct silt_super_birth *birth, int *ret_status, struct silt_error *e);
