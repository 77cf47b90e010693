/* SPDX-License-Identifier: Apache-2.0 */
/* digest: lists of sha256 digests in a setting: 64 hexadecimal digits each, separated by commas or spaces. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SILT_DIGEST_BYTES = 32 };

/* The next one; *list moves on. What is no digest is passed over. False: there is none left. */
bool silt_digest_next(const char **list, uint8_t ret[SILT_DIGEST_BYTES]);
bool silt_digest_listed(const char *list, const uint8_t digest[SILT_DIGEST_BYTES]);
