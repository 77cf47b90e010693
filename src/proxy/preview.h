/* SPDX-License-Identifier: Apache-2.0 */
/* preview: the role that visitors of services inside sandboxes meet (wire/preview.h). */
#pragma once

#include "config/config.h"

/* Until silt-super is gone. */
int silt_preview_run(const struct silt_config *c, struct silt_error *e);
