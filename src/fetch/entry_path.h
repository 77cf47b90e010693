/* SPDX-License-Identifier: Apache-2.0 */
/* entry_path: names in an untrusted archive as paths below the current directory, which is their
 * root. */
#pragma once

#include "base/slice.h"

/* `./usr//bin/` becomes `usr/bin`, the root becomes empty. Returns what is wrong with the name, or
 * NULL. */
const char *silt_entry_path_clean(const char *from, char out[PATH_MAX]);
/* Resolves symbolic links, made by a lower layer, among the directories of a clean path; they are
 * followed as if chrooted. The last component is not resolved. Returns what is wrong, or NULL. */
const char *silt_entry_path_follow(const char *clean, char out[PATH_MAX]);
/* Removes it recursively without following links. Succeeds if it does not exist. */
int silt_entry_path_remove(const char *path, struct silt_error *e);
/* Removes the contents of the directory, or of the root if the path is empty; succeeds if it is not
 * a directory. */
int silt_entry_path_empty(const char *path, struct silt_error *e);
