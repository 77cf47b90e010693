/* SPDX-License-Identifier: Apache-2.0 */
/* digest: the text of a sha256 digest: 64 hexadecimal digits, small ones. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { SILT_DIGEST_BYTES = 32 };

/* False: it is none. */
bool silt_digest_parse(silt_slice text, uint8_t ret[SILT_DIGEST_BYTES]);
