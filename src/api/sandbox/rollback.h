/* SPDX-License-Identifier: Apache-2.0 */
/* rollback: gives a sandbox the files it had at a snapshot, for the routes that do so. */
#pragma once

#include "api/core/api.h"
#include "sandbox/image/undo.h"

/* The snapshot's files fit below the sandbox: they are its own, with the same layers below. */
bool silt_rollback_fits(const struct silt_sandbox *s, const struct silt_image *i);
/* The last step of a call. `undone` NULL: answers with the sandbox. Otherwise forgets the commands
 * from that one on and answers with `text`. */
void silt_rollback_run(struct silt_call *c, struct silt_image *i, const struct silt_history *undone,
                       silt_slice text);
