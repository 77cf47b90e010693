/* SPDX-License-Identifier: Apache-2.0 */
/* glob: patterns over paths. `*` matches anything but a slash, `**` anything, `?` one character but
 * a slash; a pattern matches if it covers a run of whole components anywhere in the path. Time is
 * bounded by path length times pattern length. */
#pragma once

#include "base/slice.h"

enum { SILT_GLOB_MAX = 1024 }; /* characters of one pattern */

struct silt_glob;

/* NULL: too long, or no memory. */
struct silt_glob *silt_glob_new(silt_slice pattern);
void silt_glob_free(struct silt_glob *g);
bool silt_glob_fits(const struct silt_glob *g, silt_slice path);
