/* SPDX-License-Identifier: Apache-2.0 */
/* preview: silt-proxy's role that serves what runs in sandboxes to visitors. */
#pragma once

#include "config/config.h"

/* Until silt-super is gone. */
int silt_preview_run(const struct silt_config *c, struct silt_error *e);
