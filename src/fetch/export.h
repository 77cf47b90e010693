/* SPDX-License-Identifier: Apache-2.0 */
/* export: writes the current directory, an image's tree, as an archive with one layer: an OCI
 * layout, the old format of `docker save`, or a tar of the root. Reads the tree twice instead of
 * storing it. Runs in silt-fetch. */
#pragma once

#include "base/slice.h"
#include "wire/priv.h"

/* `config` is JSON. Writes the complete archive to `out`. */
int silt_export(const struct silt_fetch_order *order, silt_slice config, int out,
                struct silt_fetch_result *ret, struct silt_error *e);
