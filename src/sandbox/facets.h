/* SPDX-License-Identifier: Apache-2.0 */
/* facets: the table of all facets of a sandbox (sandbox/core/facet.h). siltd passes it to its
 * registry. */
#pragma once

#include "sandbox/core/facet.h"

extern const struct silt_facets silt_facets;
