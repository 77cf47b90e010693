/* SPDX-License-Identifier: Apache-2.0 */
/* preview: the role silt-preview, which serves services inside sandboxes to HTTP clients. */
#pragma once

#include "config/config.h"

/* Until silt-super is gone. */
int silt_preview_run(const struct silt_config *c, struct silt_error *e);
