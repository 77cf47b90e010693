/* SPDX-License-Identifier: Apache-2.0 */
/* dial: silt-proxy's second role, in the gate: it makes sockets and gives them away. */
#pragma once

#include "base/error.h"

/* Until silt-super goes. */
int silt_dial_run(struct silt_error *e);
