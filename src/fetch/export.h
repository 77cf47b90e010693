/* SPDX-License-Identifier: Apache-2.0 */
/* export: the current folder, which is an image's tree, as an archive with one layer: an OCI layout, what
 * `docker save` wrote in its old form, or a tar of the root. The tree is read twice, so nothing is stored on the way. */
#pragma once

#include "base/slice.h"
#include "wire/priv.h"

/* `config` is JSON. Writes to `out` to the end. */
int silt_export(const struct silt_fetch_order *order, silt_slice config, int out,
                struct silt_fetch_result *ret, struct silt_error *e);
