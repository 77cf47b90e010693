/* SPDX-License-Identifier: Apache-2.0 */
/* layout: the files of an archive of an image, all there, become its tree in the current folder. */
#pragma once

#include "fetch/spool.h"

/* What it says (see struct silt_fetch_result) is added to `said`. */
int silt_layout_unpack(const struct silt_spool *spool, const struct silt_fetch_order *order,
                       const struct silt_archive_limits *limits, struct silt_fetch_result *ret,
                       struct silt_buf *said, struct silt_error *e);
