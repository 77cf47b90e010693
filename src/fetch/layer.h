/* SPDX-License-Identifier: Apache-2.0 */
/* layer: a tar that adds to, replaces and removes what the layers below it have put into the current
 * folder (whiteouts: `.wh.name` removes one, `.wh..wh..opq` all that a folder had). */
#pragma once

#include "fetch/spool.h"

struct silt_layer {
    const struct silt_spool *spool; /* all borrowed */
    const struct silt_spooled *file;
    const uint8_t *diff; /* what its content, unpacked, must hash to */
};

int silt_layer_apply(const struct silt_layer *l, const struct silt_archive_limits *limits,
                     struct silt_fetch_result *result, struct silt_error *e);
