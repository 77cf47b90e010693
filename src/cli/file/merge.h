/* SPDX-License-Identifier: Apache-2.0 */
/* merge: moves a directory that was filled from a sandbox into place once it is complete. Never
 * follows a link: one from an earlier copy may lead anywhere. */
#pragma once

#include "base/error.h"

/* Moves the content of `from` into `to`, both on one file system. Merges directories that exist in
 * both; replaces files. */
int silt_merge_move(const char *from, const char *to, struct silt_error *e);
void silt_merge_remove(const char *directory); /* recursively; does nothing if it does not exist */
