/* SPDX-License-Identifier: Apache-2.0 */
/* reference: checks names of images, `[host[:port]/]path[:tag]`, and makes them canonical by
 * dropping the optional parts docker.io, library and latest. */
#pragma once

#include "base/slice.h"

enum { SILT_REFERENCE_SIZE = 256, SILT_TAG_MAX = 128 };

/* Path components begin with a-z or 0-9 and may also contain '.', '_' and '-'; a tag may contain
 * capitals. */
int silt_reference_read(silt_slice text, char ret[SILT_REFERENCE_SIZE], struct silt_error *e);
/* Offset of the tag (after the colon) in a canonical reference; its length if it has none. */
size_t silt_reference_tag(silt_slice reference);
