/* SPDX-License-Identifier: Apache-2.0 */
/* glob: matches paths against patterns. `*` matches any characters but a slash, `**`
 * also slashes, `?` one character but a slash; flags add what a syntax has beyond that. Time is
 * bounded by path length times pattern length. */
#pragma once

#include "base/slice.h"

enum { SILT_GLOB_MAX = PATH_MAX }; /* bytes of one pattern; a longer one matches nothing */

enum silt_glob_flag {
    SILT_GLOB_SETS = 1,  /* [a-z], [!a-z], and a backslash before a special character */
    SILT_GLOB_SKIP = 2,  /* a double star and its slash also match no directory at all */
    SILT_GLOB_LAST = 4,  /* without a slash, a pattern is for the path's last component */
    SILT_GLOB_EACH = 8,  /* a match may begin at each component */
    SILT_GLOB_TREE = 16, /* a match of a directory includes what is in it */
    /* What the parts of Silt use. */
    SILT_GLOB_OF_SEARCH = SILT_GLOB_SKIP | SILT_GLOB_LAST,
    SILT_GLOB_OF_WATCH = SILT_GLOB_EACH | SILT_GLOB_TREE,
    SILT_GLOB_OF_DOCKERIGNORE = SILT_GLOB_SETS | SILT_GLOB_SKIP | SILT_GLOB_TREE
};

bool silt_glob_matches(silt_slice glob, silt_slice path, unsigned flags);
/* Patterns of host names, one per line, where only `*` is special and matches any bytes. Adds the
 * steps it took. */
bool silt_glob_hosts_match(silt_slice globs, silt_slice name, int64_t *steps);
