/* SPDX-License-Identifier: Apache-2.0 */
/* reference: names of images, `[host[:port]/]path[:tag]`, in one spelling: what every such name may leave out (docker.io,
 * library, latest) is left out. */
#pragma once

#include "base/slice.h"

enum { SILT_REFERENCE_SIZE = 256, SILT_TAG_MAX = 128 };

/* Parts of the path begin with a-z or 0-9 and may hold '.', '_' and '-', too; a tag may hold capitals. */
int silt_reference_read(silt_slice text, char ret[SILT_REFERENCE_SIZE], struct silt_error *e);
/* A reference in that spelling: where its tag begins, behind the colon; its length when it has none. */
size_t silt_reference_tag(silt_slice reference);
