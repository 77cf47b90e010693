/* SPDX-License-Identifier: Apache-2.0 */
/* find_glob: matches a path against a shell-like pattern, for searches; the patterns of watches
 * follow other rules (watch/glob.h). `*` and `?` do not match a slash, `**` does, and `**` followed
 * by a slash also matches no directory at all; a pattern without a slash applies to the last
 * component. Time is bounded by the square of path length times pattern length. */
#pragma once

#include <stdbool.h>

bool silt_find_glob_matches(const char *pattern, const char *path);
