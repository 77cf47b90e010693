/* SPDX-License-Identifier: Apache-2.0 */
/* remove: deletes directory trees written by guests. Follows no symlink; stack and descriptor use
 * do not depend on the depth of the tree. Runs in silt-priv's janitor. */
#pragma once

#include "base/error.h"

/* Deletes `name` below `dir`, recursively if it is a directory. Succeeds if it does not exist. */
int silt_remove(int dir, const char *name, struct silt_error *e);
/* Deletes every entry of `dir` whose name starts with `prefix` ("" for all). */
int silt_remove_all(int dir, const char *prefix, struct silt_error *e);
