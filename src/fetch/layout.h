/* SPDX-License-Identifier: Apache-2.0 */
/* layout: unpacks a completely spooled image archive into a tree in the current directory. */
#pragma once

#include "fetch/spool.h"

/* Adds the configuration and names (see struct silt_fetch_result) to `said`. */
int silt_layout_unpack(const struct silt_spool *spool, const struct silt_fetch_order *order,
                       const struct silt_archive_limits *limits, struct silt_fetch_result *ret,
                       struct silt_buf *said, struct silt_error *e);
