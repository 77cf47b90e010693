/* SPDX-License-Identifier: Apache-2.0 */
/* digest: parses a sha256 digest: 64 lower-case hexadecimal digits. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { SILT_DIGEST_BYTES = 32 };

/* False: not a digest. */
bool silt_digest_parse(silt_slice text, uint8_t ret[SILT_DIGEST_BYTES]);
