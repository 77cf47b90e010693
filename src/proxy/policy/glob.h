/* SPDX-License-Identifier: Apache-2.0 */
/* glob: matches names against patterns, one per line, where * stands for any number of bytes. */
#pragma once

#include "base/slice.h"

/* Lower case on both sides. */
bool silt_globs_have(silt_slice globs, silt_slice name, int64_t *steps); /* adds what it took */
