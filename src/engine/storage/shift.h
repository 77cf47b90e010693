/* SPDX-License-Identifier: Apache-2.0 */
/* shift: gives the files of a private copy of a layer from one sandbox's ids to another's: owners,
 * POSIX ACLs, and the root id of file capabilities. A child process walks the tree, with the tree
 * as its root directory, five capabilities and no descriptor of ours: a guest wrote these files.
 * Runs in silt-priv's workers. */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* `directory`: the layer, which no other process sees yet. SILT_TIMEOUT: it did not end in time;
 * SILT_LIMIT: directories too deep. */
int silt_shift(int directory, uint32_t from, uint32_t to, struct silt_error *e);
