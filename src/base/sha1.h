/* SPDX-License-Identifier: Apache-2.0 */
/* sha1: for the WebSocket handshake (RFC 6455), which proves nothing but that both sides speak it.
 * Protects nothing. */
#pragma once

#include "base/slice.h"

enum { SILT_SHA1_BYTES = 20, SILT_SHA1_TEXT_MAX = 119 };

/* Of a short text: at most SILT_SHA1_TEXT_MAX bytes. */
void silt_sha1(silt_slice text, uint8_t ret[SILT_SHA1_BYTES]);
