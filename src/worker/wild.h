/* SPDX-License-Identifier: Apache-2.0 */
/* wild: whether a search means a file, by a pattern as shells know it; the patterns of watches have rules
 * of their own (glob.h). `*` and `?` do not cross a slash, `**` does, and `**` with a slash behind it may
 * stand for no folder at all; a pattern without a slash is about the last name of a path. Takes time at
 * most the square of the path times the pattern, whatever the pattern is. */
#pragma once

#include <stdbool.h>

bool silt_wild_matches(const char *pattern, const char *path);
