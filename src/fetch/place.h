/* SPDX-License-Identifier: Apache-2.0 */
/* place: names of a stranger's archive as places below the current folder, which is their root. */
#pragma once

#include "base/slice.h"

/* `./usr//bin/` becomes `usr/bin`, the root becomes empty. Answers what is wrong with it, or NULL. */
const char *silt_place_clean(const char *from, char out[PATH_MAX]);
/* A clean path whose folders may be symbolic links, as another layer has made them, becomes one
 * without: followed as in a root, whatever they say. The last part stays what it is. Answers what is
 * wrong, or NULL. */
const char *silt_place_follow(const char *clean, char out[PATH_MAX]);
/* All of it goes, links are not followed. Fine when it is not there. */
int silt_place_remove(const char *path, struct silt_error *e);
/* What is in the folder, or with an empty path in the root, goes; fine when it is none. */
int silt_place_empty(const char *path, struct silt_error *e);
