/* SPDX-License-Identifier: Apache-2.0 */
/* merge: folders of this machine that were filled by a stranger and go to their place only when
 * they are whole. Nothing goes through a link: one that came with an earlier copy leads anywhere.
 */
#pragma once

#include "base/error.h"

/* Moves everything in folder `from` into folder `to`; both on one file system. Folders that are in
 * both are merged, files replaced. */
int silt_merge_move(const char *from, const char *to, struct silt_error *e);
void silt_merge_remove(const char *folder); /* and everything in it; fine when it is not there */
