/* SPDX-License-Identifier: Apache-2.0 */
/* layer: applies a layer's tar to the current directory: adds, replaces and removes files of the
 * layers below (whiteouts: `.wh.name` removes one name, `.wh..wh..opq` the whole contents of a
 * directory). */
#pragma once

#include "fetch/spool.h"

struct silt_layer {
    const struct silt_spool *spool; /* all borrowed */
    const struct silt_spooled *file;
    const uint8_t *diff; /* expected digest of the uncompressed contents */
};

int silt_layer_apply(const struct silt_layer *l, const struct silt_archive_limits *limits,
                     struct silt_fetch_result *result, struct silt_error *e);
