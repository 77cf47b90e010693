/* SPDX-License-Identifier: Apache-2.0 */
/* fork: sandboxes made from another one or from a snapshot. Runs in siltd. */
#pragma once

#include "api/core/api.h"

/* The rest of a create whose body has `from`: answers the request. */
void silt_api_create_from(struct silt_call *c, const char *id);
