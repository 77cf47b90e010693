/* SPDX-License-Identifier: Apache-2.0 */
/* remove: deletes trees that strangers have written: follows no symlink, needs neither a deep stack
 * nor many descriptors however deep the tree is. Run by the janitor. */
#pragma once

#include "base/error.h"

/* Deletes `name` below `dir`, a folder with all in it or anything else; fine when it is not there.
 */
int silt_remove(int dir, const char *name, struct silt_error *e);
/* Deletes everything below `dir` whose name begins with `prefix` ("" for all). */
int silt_remove_all(int dir, const char *prefix, struct silt_error *e);
